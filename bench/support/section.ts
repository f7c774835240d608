/** The result of a bench: text for people, and figures with budgets. */
import { table } from './table.ts';

/** A budget of the design and its measurement. Smaller is better. */
export interface Budget {
  readonly what: string;
  readonly value: number;
  readonly limit: number;
  readonly unit: string;
  /** Significant digits after the point. */
  readonly digits: number;
}

export interface Section {
  /** The npm script that makes it. */
  readonly script: string;
  readonly title: string;
  /** Markdown. */
  readonly text: string;
  readonly budgets: readonly Budget[];
}

/** Whether a budget is met, or its excess, by the shown digits. */
export function verdict({ value, limit, unit, digits }: Budget): string {
  const shown = Number(value.toFixed(digits));
  if (shown <= limit) return 'met';
  const missed = `missed by ${(shown - limit).toFixed(digits)} ${unit}`.trimEnd();
  return limit === 0 ? missed : `${missed} (${Math.ceil((shown / limit - 1) * 100)} %)`;
}

/** One line for each budget. */
export function budgetTable(budgets: readonly Budget[]): string {
  const amount = ({ unit, digits }: Budget, value: number): string => `${value.toFixed(digits)} ${unit}`;
  return table(
    ['what', 'budget', 'measured', 'verdict'],
    budgets.map((budget) => [
      budget.what,
      `≤ ${amount(budget, budget.limit)}`,
      amount(budget, budget.value),
      verdict(budget),
    ]),
  );
}

/** The budgets in short, for the page. */
export function budgetList(budgets: readonly Budget[]): string {
  const groups = Map.groupBy(budgets, ({ what }) => /^[\d,]+ at \d+\/s: /.exec(what)?.[0] ?? what);
  return [...groups]
    .map(
      ([group, list]) => `- ${list.map((each, index) => inShort(each, index > 0 ? group : '')).join('; ')}`,
    )
    .join('\n');
}

/** A budget in short, without the beginning of its name that its line has already. */
function inShort(budget: Budget, prefix: string): string {
  const { what, value, limit, unit, digits } = budget;
  const missed = verdict(budget) === 'met' ? '' : ', missed';
  return `${what.slice(prefix.length)}: ${value.toFixed(digits)}${unit === '×' ? '' : ' '}${unit} (≤${limit.toFixed(digits)})${missed}`;
}

export function formatSection({ title, script, text, budgets }: Section): string {
  const parts = [`## ${title}`, `\`npm run ${script}\``, text];
  if (budgets.length > 0) parts.push(budgetTable(budgets));
  return `${parts.join('\n\n')}\n`;
}

/** For a bench that is run by itself. */
export function printSection(section: Section): void {
  process.stdout.write(formatSection(section));
}
