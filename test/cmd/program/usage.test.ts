/** Wrong usage of each subcommand ends with 2, writes nothing to standard output and says what to change. */
import t from 'tap';
import { run } from '../run.ts';
import { files, kubeconfig } from '../world.ts';
import { like } from '../../support/like.ts';

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
  [['agent', '--check', '--kubelet-config-bin-dir', '/bin'], /kubeletConfig\.binDir/],
  [['agent'], /name the directory with tls\.crt, tls\.key and ca\.crt by --tls-dir/],

  [['clean', 'everything'], /takes no arguments, but got everything/],
  [['clean'], /no cluster found; set --kubeconfig/],

  [['completion'], /name one of bash, zsh, fish, kubectl/],
  [['completion', 'bash', 'zsh'], /name one of/],
  [['completion', 'bahs'], /unknown shell bahs; did you mean bash/],
  [['completion', 'toString'], /unknown shell toString/],

  [['config'], /name what to do: check, print\n/],
  [['config', 'chekc'], /unknown action chekc; did you mean check\?/],
  [['config', 'check', 'a', 'b'], /takes one file, but also got b/],
  [['config', 'check', '-', '-'], /takes one file/],
  [['config', 'check', '-o', 'json'], /--output belongs to print/],
  [['config', 'print', '--listen', 'x'], /^archwright: --listen: listen must be an address/],

  [['controller'], /run it in a pod, or select a cluster with --kubeconfig/],
  [controller, /set the namespace of archwright with --namespace/],
  [[...controller, '--lease-duration', '5s'], /lease-duration.*; it was removed: /],
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
  [['explain', 'service/web'], /service is not a kind with pods/],

  [['inspect'], /name at least one image/],
  [['inspect', '--config', '/nonexistent/archwright.toml', 'a'], /no such file/],
  [['inspect', '--inspect-timeout', 'soon', 'a'], /inspect-timeout|inspectTimeout/],
  [
    ['inspect', '--kubelet-config-bin-dir', '/bin', 'a.example/b'],
    /kubeletConfig\.binDir.*needs kubeletConfig\.config or kubeletConfig\.configDir/,
  ],
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
];

for (const [args, message] of cases) {
  t.test(`wrong usage: ${args.join(' ')}`, async (t) => {
    const result = await run(args);
    t.strictSame([result.code, result.out], [2, '']);
    like(t, result.err, message);
  });
}
