import t from 'tap';
import { parseFlags, settingsOf } from '../../../cmd/program/flags.ts';
import { list, text, toggle } from '../../../cmd/program/flag.ts';
import type { Subcommand } from '../../../cmd/program/subcommand.ts';

const subcommand: Subcommand = {
  usage: '',
  description: '',
  settings: 'all',
  flags: {
    output: list('FORMAT', 'How.', { short: 'o' }),
    verbose: toggle('More.', { short: 'v' }),
  },
  run: () => Promise.resolve(0),
};

function parse(...args: string[]) {
  const { given: _, ...parsed } = parseFlags(subcommand, args);
  return parsed;
}

const own = { output: [] as string[], verbose: false };
const nothing = { help: false, positionals: [], own, settings: {}, config: undefined };

t.test('flags are parsed in each form', async (t) => {
  const cases: [string[], object][] = [
    [[], {}],
    [['--listen', ':1'], { settings: { listen: ':1' } }],
    [['--listen=:1'], { settings: { listen: ':1' } }],
    [['--listen', ':1', '--listen', ':2'], { settings: { listen: ':2' } }],
    [['--listen='], { settings: { listen: '' } }],
    [['--agents', 'a,b', '--agents', 'c'], { settings: { agents: 'a,b,c' } }],
    [
      ['--preferred-weights', 'a=1', '--preferred-weights=b=2'],
      { settings: { preferredWeights: 'a=1,b=2' } },
    ],
    [['--architectures', '{}', '--architectures={ a = {} }'], { settings: { architectures: '{ a = {} }' } }],
    [['--tolerations', '{ key = "a" }'], { settings: { tolerations: '{ key = "a" }' } }],
    [['--docker-config', 'f'], { settings: { dockerConfigPathCandidates: 'f' } }],
    [['--docker-config-path-candidates', 'f'], { settings: { dockerConfigPathCandidates: 'f' } }],
    [['--tolerate-architecture-taint'], { settings: { tolerateArchitectureTaint: 'true' } }],
    [['--no-tolerate-architecture-taint'], { settings: { tolerateArchitectureTaint: 'false' } }],
    [['--config', 'f'], { config: 'f' }],
    [['-o', 'json', '-v'], { own: { output: ['json'], verbose: true } }],
    [['-ojson'], { own: { ...own, output: ['json'] } }],
    [['-vo', 'json', '--output=b'], { own: { output: ['json', 'b'], verbose: true } }],
    [['--output', '-'], { own: { ...own, output: ['-'] } }],
    [['--output=-x'], { own: { ...own, output: ['-x'] } }],
    [['a', '-', '--verbose', 'b'], { positionals: ['a', '-', 'b'], own: { ...own, verbose: true } }],
    [['--', '--verbose', '-x'], { positionals: ['--verbose', '-x'] }],
    [['-h'], { help: true, own: {} }],
  ];
  for (const [args, expected] of cases)
    t.strictSame(parse(...args), { ...nothing, ...expected }, args.join(' '));
});

t.test('wrong usage is an error that names a fix', async (t) => {
  const cases: [string[], string][] = [
    [['--listn'], 'unknown flag --listn; did you mean --listen?'],
    [['--listn=x'], 'unknown flag --listn; did you mean --listen?'],
    [['-x'], 'unknown flag -x'],
    [['--kubelet'], 'unknown flag --kubelet'],
    [
      ['--moved-pods-name=x'],
      'unknown flag --moved-pods-name; it was removed: the leader remembers its evictions in memory',
    ],
    [['--no-listen'], 'unknown flag --no-listen; did you mean --listen?'],
    [['--no-verbose'], 'unknown flag --no-verbose; did you mean --verbose?'],
    [['--listen'], '--listen needs a value'],
    [['--listen', '--verbose'], '--listen needs a value; if it is --verbose, write --listen=--verbose'],
    [['-o'], '-o needs a value'],
    [['--verbose=yes'], '--verbose is a switch and takes no value'],
    [['--tolerate-architecture-taint=false'], '--tolerate-architecture-taint is a switch and takes no value'],
    [['--__proto__', 'x'], 'unknown flag --__proto__'],
  ];
  for (const [args, message] of cases) {
    t.throws(() => parse(...args), { name: 'UsageError', message }, args.join(' '));
  }
});

t.test('each part accepts its settings as flags', async (t) => {
  const has = (settings: Subcommand['settings'], key: string, flags = {}) =>
    key in settingsOf({ settings, flags });
  t.ok(has('webhook', 'inlineBudget'));
  t.notOk(has('webhook', 'stateDir'));
  t.ok(has('all', 'stateDir'));
  t.notOk(has('none', 'logLevel'));
  t.ok(has('explain', 'namespace'));
  t.notOk(has('explain', 'namespace', { namespace: text('NAME', '') }), 'its own flag has this name');
  const none = { ...subcommand, settings: 'none' as const };
  t.throws(() => parseFlags(none, ['--config', 'f']), /unknown flag --config/);
});
