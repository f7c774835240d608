/** Short texts in settings, files and command lines. */
import { parseGoDuration, parseGoUrl } from '../../../daemon/go.ts';
import { parseVersion } from '../../../daemon/containerd/config/rules.ts';
import { glob } from '../../../daemon/containerd/config/config.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { InvalidConfig } from '../../../daemon/toml.ts';
import { parseNamedObjects } from '../../../cmd/explain/named-objects.ts';
import { parseFlags } from '../../../cmd/program/flags.ts';
import { UsageError } from '../../../cmd/program/exit.ts';
import { subcommand as explain } from '../../../cmd/explain.ts';
import { subcommand as webhook } from '../../../cmd/webhook.ts';
import { parsePattern } from '../../../src/credentials/keyring/key.ts';
import { staticDiscovery } from '../../../src/fleet/discovery.ts';
import { addressKind, isForbiddenAddress } from '../../../src/http/reach/address.ts';
import { proxyFor, describeProxies, ProxyError } from '../../../src/http/proxy/proxy.ts';
import {
  compileOverrides,
  OverridePatternError,
  type ImageOverride,
} from '../../../src/images/sources/overrides.ts';
import { agentsLocation } from '../../../src/policy/value-kinds/addresses.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import {
  formatDuration,
  parseDuration,
  formatBytes,
  parseBytes,
  parseQuantity,
} from '../../../src/names/quantity.ts';
import { boundedWarnings, maxWarningBytes, printable } from '../../../src/names/printable.ts';
import { parseListenAddress, ServingError, urlOf } from '../../../src/serving/address.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { captureLog } from '../captured.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { words } from './inputs.ts';
import { must, unlessRefused, type FuzzTarget } from './target.ts';
const targets = ['https://registry.corp:5000/v2/', 'http://10.1.2.3/v2/', 'https://[fd00::1]/v2/'];

export const textTargets: readonly FuzzTarget[] = [
  {
    name: 'durations',
    share: 20,
    examples: ['1h30m', '7d', '500ms', '1.5h', '-1m0s', '3µs'],
    words: words('d h m s ms us ns 0 1 9 . - + 99999999'),
    feed: (_, text) => {
      const ms = parseDuration(text);
      if (ms !== undefined)
        must(parseDuration(formatDuration(ms)) === ms, 'another duration when read again');
      const go = parseGoDuration(text);
      must(go === undefined || Number.isFinite(go), 'no finite duration');
      return undefined;
    },
  },
  {
    name: 'quantities',
    share: 20,
    examples: ['500m', '1.5Gi', '1e3', '64Mi', '12'],
    words: words('Ki Mi Gi Ei n u m k E e . - + 0 9 99999'),
    feed: (_, text) => {
      const value = parseQuantity(text);
      must(value === undefined || Number.isFinite(value), 'no finite number');
      const bytes = parseBytes(text);
      if (bytes !== undefined) must(parseBytes(formatBytes(bytes)) === bytes, 'other bytes when read again');
    },
  },
  {
    name: 'texts for people',
    share: 20,
    examples: ['a message with an image', 'ä\u202E\0\n'],
    words: words('\u{1F600} \uD800 \u0301 a', '\n'),
    feed: (input) => {
      const text = input.toString('utf8').repeat(3);
      const shown = printable(text, maxWarningBytes);
      must(Buffer.byteLength(shown) <= maxWarningBytes, 'longer than its limit');
      must(printable(shown, maxWarningBytes) === shown, 'another text when printed again');
      return boundedWarnings(Array.from({ length: 20 }, () => text));
    },
  },
  {
    name: 'lines of the log',
    share: 20,
    examples: ['hunter-2-hunter', '"level":"warn"', '"}\n{"level":"error"', '\\\\"'],
    words: words('" \\ \\" { } : , "level": "time": \uD800', '\n'),
    feed: (_, text) => {
      const { log, lines } = captureLog();
      secret(text.slice(0, 64));
      log.info({ text });
      const [line = '', ...others] = lines;
      must(others.length === 0 && line.indexOf('\n') === line.length - 1, 'not one line');
      const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
      must(Object.keys(fields).join() === 'level,time,text' && fields['level'] === 'info', 'other fields');
      return line;
    },
  },
  {
    name: 'addresses to listen on and to dial',
    share: 20,
    examples: [
      '127.0.0.1:8443',
      '[::1]:9443',
      ':8080',
      '::ffff:10.0.0.1',
      '169.254.169.254',
      '64:ff9b::a00:1',
    ],
    words: words(': [ ] . % 0 255 256 ffff :: 0x7f 2130706433 fe80::1%eth0 65535'),
    feed: (input) => {
      const text = input.toString('utf8');
      const kind = addressKind(text);
      if (kind !== undefined)
        for (const registry of [undefined, '10.0.0.1', '127.0.0.1', text]) isForbiddenAddress(text, registry);
      const { host, port } = parseListenAddress(text);
      urlOf('https', host, port);
    },
    expected: [ServingError],
  },
  {
    name: 'addresses of agents',
    share: 20,
    examples: ['https://10.0.0.1:9443', 'https://[fd00::1]:9443'],
    words: words('https:// @ / ? # [::1] :0 :65536 http://'),
    feed: (input) => {
      const text = agentsLocation.read(input.toString('utf8'), () => undefined);
      if (text?.startsWith('https://') !== true) return undefined;
      const [found] = staticDiscovery([text]).current();
      must(found?.url === new URL(text).origin, 'another URL when read again');
      return found;
    },
  },
  {
    name: 'proxy variables',
    examples: [
      'http://user:p%40ss@proxy.corp:3128',
      'proxy.corp:3128\nlocalhost,.corp,10.0.0.0/8,[fd00::1]:443,*.example.com:8443',
      'https://[::1]:8080\n*',
    ],
    words: words('http:// socks5:// @ : %zz %00 .corp , * 10.0.0.0/33 ::/0 /', '\n'),
    feed: (_, text) => {
      const [proxy = '', direct = ''] = text.split('\n', 2);
      const environment = { HTTPS_PROXY: proxy, HTTP_PROXY: proxy, NO_PROXY: direct };
      const shown = describeProxies(environment);
      for (const target of targets) proxyFor(new URL(target), environment);
      return shown;
    },
    expected: [ProxyError],
  },
  {
    name: 'image overrides',
    share: 20,
    examples: ['registry.corp/team/*:v1.*', 'nginx', '*@sha256:' + 'a'.repeat(64), 'docker.io/library/*'],
    words: words('* ** / : @ [ ] ( \\ . + ?'),
    feed: (_, text) => {
      const list: ImageOverride[] = [{ match: text, architectures: ['amd64'] }];
      const compiled = compileOverrides(list, systemClock);
      const image = `registry.corp/${'team/'.repeat(40)}app:v1.${'1'.repeat(100)}`;
      for (const each of [image, 'nginx']) compiled.find(each, parseReference(each));
    },
    expected: [OverridePatternError],
  },
  {
    name: 'patterns of imports and of images',
    share: 4,
    examples: [
      '/etc/conf.d/*.toml',
      '/etc/[a-z]?/\\*',
      '*.dkr.ecr.*.amazonaws.com',
      'https://index.docker.io/v1/',
    ],
    words: words('* ? [ ] ^ - \\ / a-z [^ ]] **'),
    feed: async (input) => {
      const text = input.toString('utf8').replaceAll('\0', '');
      parsePattern(text);
      parseGoUrl(text);
      parseVersion(text);
      // In an empty root: only the pattern matters.
      await glob(`/${text.split('/').at(-1) ?? ''}`, new NodeFiles('/proc/self/fdinfo/none'));
    },
    expected: [InvalidConfig],
  },
  {
    name: 'command lines',
    share: 1,
    examples: [
      '--log-level debug --listen :8443 -h',
      'pod/web-0 -n shop -f - --output=json',
      'deployment/web --no-x',
    ],
    words: words('-- - = --config --no- --listen pod/ a/b/c', ' '),
    feed: async (_, text) => {
      const args = text.split(' ');
      for (const subcommand of [webhook, explain])
        await unlessRefused([UsageError], () => parseFlags(subcommand, args));
      await unlessRefused([UsageError], () => parseNamedObjects(args));
      for (const arg of args) await unlessRefused([UsageError], () => parseNamedObjects([arg]));
    },
  },
];
