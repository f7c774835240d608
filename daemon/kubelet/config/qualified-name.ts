/** Validation of annotation names, with Kubernetes' messages (apimachinery pkg/util/validation/validation.go `IsQualifiedName`). */

const nameFormat = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const nameRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character" +
  ` (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${nameFormat}')`;
const maxNameLength = 63;

const labelFormat = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomainFormat = String.raw`${labelFormat}(\.${labelFormat})*`;
const subdomainRule =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  `end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomainFormat}')`;
const maxSubdomainLength = 253;

const isName = new RegExp(`^${nameFormat}$`);
const isSubdomain = new RegExp(`^${subdomainFormat}$`);
const empty = 'must be non-empty';

/** The errors in a name `[prefix/]name`. */
export function qualifiedNameProblems(text: string): string[] {
  const parts = text.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? '';
  const problems = parts.length === 2 ? prefixProblems(parts[0] ?? '') : [];
  if (name === '') problems.push(`name part ${empty}`);
  else if (Buffer.byteLength(name) > maxNameLength) problems.push(`name part ${tooLong(maxNameLength)}`);
  if (!isName.test(name)) problems.push(`name part ${nameRule}`);
  return problems;
}

function prefixProblems(prefix: string): string[] {
  if (prefix === '') return [`prefix part ${empty}`];
  const problems: string[] = [];
  if (Buffer.byteLength(prefix) > maxSubdomainLength)
    problems.push(`prefix part ${tooLong(maxSubdomainLength)}`);
  if (!isSubdomain.test(prefix)) problems.push(`prefix part ${subdomainRule}`);
  return problems;
}

function tooLong(max: number): string {
  return `must be no more than ${max} bytes`;
}
