/** Flags, and wrong usage of each subcommand: it ends with 2, writes nothing to standard output and says what to change. */
import t from 'tap';
import { parseFlags, settingsOf } from '../../../cmd/program/flags.ts';
import { list, text, toggle } from '../../../cmd/program/flag.ts';
import type { Subcommand } from '../../../cmd/program/subcommand.ts';
import { run } from '../run.ts';
import { files, kubeconfig } from '../world.ts';
import { like } from '../../support/like.ts';

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

t.test('wrong usage of a subcommand', async (t) => {
  const paths = files(t, {
    'pod.yaml': '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[]}}',
    'bad.yaml': 'kind: Pod\nmetadata:\n  name: [a\n',
    'service.yaml': 'apiVersion: v1\nkind: Service\nmetadata: { name: front }\n',
    config: kubeconfig('https://127.0.0.1:1'),
  });
  const pod = paths['pod.yaml'];
  const controller = ['controller', '--kubeconfig', paths.config];
  const badName = /--service-account must be NAMESPACE\/NAME/;

  const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [[], /^archwright: name a subcommand: .*config/],
    [['conifg'], /^archwright: unknown subcommand conifg; did you mean config\?\nSee archwright --help\.\n$/],
    [['toString'], /^archwright: unknown subcommand toString\n/],
    [['--verison'], /^archwright: unknown flag --verison; did you mean --version\?/],
    [
      ['config', '--listn', 'x'],
      /^archwright config: unknown flag --listn; did you mean --listen\?\nSee archwright config --help/,
    ],

    [['agent', '--check', '--output', 'yaml'], /--output must be one of list, json, not "yaml"/],
    [['agent', '--output', 'json'], /--output needs --check/],
    [['agent', '--check', '--kubelet-config-bin-dir', '/bin'], /kubeletConfig\.binDir.*needs kubeletConfig/],
    [['agent'], /name the directory with tls\.crt, tls\.key and ca\.crt by --tls-dir/],

    [['clean', 'everything'], /takes no arguments, but got everything/],
    [['clean'], /no cluster found; set --kubeconfig/],

    [['completion'], /name one of bash, zsh, fish, kubectl/],
    [['completion', 'bash', 'zsh'], /name one of bash, zsh, fish, kubectl\n/],
    [['completion', 'bahs'], /name one of bash, zsh, fish, kubectl; did you mean bash\?/],

    [['config'], /name what to do: check, print\n/],
    [['config', 'chekc'], /name what to do: check, print; did you mean check\?/],
    [['config', 'check', 'a', 'b'], /takes one file, but also got b/],
    [['config', 'check', '-o', 'json'], /--output belongs to print/],
    [['config', 'print', '--listen', 'x'], /^archwright: --listen: listen must be an address/],

    [['controller'], /run it in a pod, or select a cluster with --kubeconfig/],
    [controller, /set the namespace of archwright with --namespace/],
    [[...controller, '--namespace', 'a', '--facts-listen', 'x'], /--facts-listen must be an address/],

    [['explain'], /name a file \(-f FILE, or -f - for standard input\) or an object of the cluster/],
    [['explain', pod], /is not an object; use KIND\/NAME/],
    [['explain', '-f', paths['bad.yaml']], /bad\.yaml:[34]:\d+: /],
    [['explain', '-f', `${pod}.gone`], /there is no such file/],
    [['explain', '-f', paths['service.yaml']], /the input contains no pod and no workload/],
    [['explain', '-f', pod, '--kubeconfig', '/nonexistent/kubeconfig'], /\/nonexistent\/kubeconfig/],
    [['explain', '-f', pod, '--context', 'nowhere'], /no context nowhere/],
    [['explain', '-f', pod, '--agents', 'https://127.0.0.1:1'], /--agent-tls-dir/],
    ...['pod', 'pod/', 'pod/a/b'].map(
      (name) => [['explain', name], /is not an object; use KIND\/NAME/] as const,
    ),
    [['explain', 'pdo/web'], /pdo is not a kind with pods/],

    [['inspect'], /name at least one image/],
    [['inspect', '--config', '/nonexistent/archwright.toml', 'a'], /no such file/],
    ...['a', 'a/', '/a', 'a/b/c', 'A/b', 'a/b,c'].map(
      (name) => [['inspect', '--service-account', name, 'r.example/a'], badName] as const,
    ),

    [['probe', 'x'], /takes no arguments, but got x/],
    [['probe', '--timeout', 'soon'], /must be a duration/],
    [['probe', '--kubeconfig', '/nowhere/config'], /nowhere/],

    [['report', 'web'], /takes no arguments/],
    [['webhook', '--tolerate-architecture-taint', 'false'], /takes no arguments, but got false/],
    [['report', '--by', 'node'], /--by must be one of workload, image, not "node"/],
    [
      ['report', '-a', 'arm 64'],
      /--architecture must be an architecture: unknown architecture arm 64; did you mean arm64\?/,
    ],

    [['webhook'], /name the directory with tls\.crt and tls\.key by --tls-dir/],
    [
      ['webhook', '--tls-dir', '/x', '--webhook-path-secret', 'a', '--namespace', 'b'],
      /webhookPathSecret requires a cluster/,
    ],
  ];

  for (const [args, message] of cases) {
    await t.test(args.join(' '), async (t) => {
      const result = await run(args);
      t.strictSame([result.code, result.out], [2, '']);
      like(t, result.err, message);
    });
  }
});
