import t from 'tap';
import {
  architectureName,
  architectureRules,
  checkArchitecture,
  imageOverride,
  tolerationTemplate,
} from '../../../src/policy/value-kinds/architectures.ts';
import { brokenBy, matching } from '../../../src/policy/value-kinds/plain.ts';
import { oneOrMore, recordsByName } from '../../../src/policy/value-kinds/records.ts';
import type { Kind } from '../../../src/policy/settings/setting.ts';
import { formatToml, parseToml } from '../../../src/policy/configuration/toml.ts';
import { never, readText } from '../report.ts';
import { like } from '../../support/like.ts';

const tolerations = oneOrMore(tolerationTemplate);
const rules = recordsByName(matching('^[^ ]*$', 'holds a blank'), architectureRules);

t.test('toleration templates are read or refused with a message', async (t) => {
  const equal = { key: 'arch', operator: 'Equal' };
  const cases: [string, unknown][] = [
    ['{ key = "arch" }', [equal]],
    ['{ key = "arch", operator = "Equal", effect = "NoSchedule" }', [{ ...equal, effect: 'NoSchedule' }]],
    ['[{ key = "arch" }, { key = "a.b/c" }]', [equal, { ...equal, key: 'a.b/c' }]],
    ['[]', []],
    ['{}', ': needs a key: the key of the taint that carries the architecture as its value'],
    ['{ key = "arch", operator = "Exists" }', 'operator: must be one of Equal, not "Exists"'],
    ['{ key = "a b" }', 'key: "a b" is not a valid label key'],
    ['{ kee = "a" }', 'kee: is not a known key; did you mean key?'],
    ['{ key = "a", toString = "b" }', 'toString: is not a known key'],
    ['[{ key = "arch" }, { effect = "Never" }]', /^1\.effect: must be one of NoSchedule/],
    ['"arch"', ': must be a table with key, operator, effect, not "arch"'],
    ['[1]', '0: must be a table with key, operator, effect, not 1'],
    ['{ key = ', /^: must be an inline TOML value/],
    ['1\nother = 2', ': must be one inline TOML value'],
  ];
  for (const [toml, expected] of cases) like(t, readText(tolerations, toml), expected, toml);
});

t.test('rules for architectures are read or refused with a message', async (t) => {
  const taint = (fields: string): string => `{ arm64 = { taintsToTolerate = [{ ${fields} }] } }`;
  const tolerated = (fields: object): object => ({
    arm64: { taintsToTolerate: [fields], requireNodeLabels: {} },
  });
  const at = (field: string, message: string): string => `arm64.taintsToTolerate.0${field}: ${message}`;
  const noKey = at('', 'needs a key, or the operator Exists, which then tolerates every taint');
  const cases: [string, unknown][] = [
    ['{}', {}],
    ['{ arm64 = {} }', { arm64: { taintsToTolerate: [], requireNodeLabels: {} } }],
    [
      '{ arm64 = { requireNodeLabels = { "a.b/c" = "d" } } }',
      { arm64: { requireNodeLabels: { 'a.b/c': 'd' } } },
    ],
    [
      '{ arm64 = { requireNodeLabels = { "a b" = "d" } } }',
      /^arm64\.requireNodeLabels\.a b: "a b" is not a valid label key$/,
    ],
    [
      '{ arm64 = { requireNodeLabels = { a = "b c" } } }',
      /^arm64\.requireNodeLabels\.a: "b c" is not a valid label value$/,
    ],
    ['{ "arm 64" = {} }', 'arm 64: holds a blank'],
    [taint('key = "a"'), tolerated({ key: 'a', operator: 'Equal' })],
    [taint('key = "a", operator = "Exists"'), tolerated({ key: 'a', operator: 'Exists' })],
    [taint('operator = "Exists"'), tolerated({ operator: 'Exists' })],
    [
      taint('key = "a", value = "b", effect = "NoSchedule"'),
      tolerated({ key: 'a', value: 'b', effect: 'NoSchedule' }),
    ],
    [
      taint('key = "a", effect = "NoExecute", tolerationSeconds = 30'),
      tolerated({ key: 'a', effect: 'NoExecute', tolerationSeconds: 30 }),
    ],
    [taint(''), noKey],
    [taint('operator = "Equal"'), noKey],
    [
      taint('key = "a", operator = "Exists", value = "b"'),
      at('.value', 'must have no value if the operator is Exists'),
    ],
    [
      taint('key = "a", effect = "NoSchedule", tolerationSeconds = 30'),
      at('.tolerationSeconds', 'applies only to the effect NoExecute'),
    ],
    [taint('key = "a", value = "b c"'), at('.value', '"b c" is not a valid label value')],
  ];
  for (const [toml, expected] of cases) like(t, readText(rules, toml), expected, toml);
});

t.test('image overrides are read or refused with a message', async (t) => {
  const overrides = oneOrMore(imageOverride);
  const patternOf = (match: string): string => `{ match = "${match}", architectures = [] }`;
  const good = ['nginx', 'a.io:5000/b:1', 'a.io/b@sha256:c', 'a.io:5000/b*/**:v*@sha256:c'];
  good.push('*a'.repeat(8), 'a'.repeat(512));
  const cases: [string, unknown][] = [
    ['{ match = "a", architectures = [] }', [{ match: 'a', architectures: [] }]],
    ['{ match = "a", architectures = ["arm64"] }', [{ match: 'a', architectures: ['arm64'] }]],
    ...good.map((match): [string, unknown] => [patternOf(match), [{ match, architectures: [] }]]),
    ...['a b', 'a:', '@b', 'a@', 'a@b@c', 'a:b:c', ':a'].map((match): [string, unknown] => [
      patternOf(match),
      `match: must be an image such as registry.example.com/team/*:latest, not "${match}"`,
    ]),
    [patternOf('*a'.repeat(9)), 'match: must not have more than 8 stars'],
    [patternOf('a'.repeat(513)), 'match: must not be longer than 512 characters'],
    ['{ match = "a" }', ': needs architectures, a list, which may be empty, or level, such as v3'],
    ['{ architectures = [] }', ': needs match: a pattern of image references'],
    ['{ match = "", architectures = [] }', 'match: must not be empty'],
    [
      '{ match = "a", architectures = ["a b"] }',
      'architectures.0: "a b" cannot be an architecture: it is not a valid label value',
    ],
  ];
  for (const [toml, expected] of cases) t.strictSame(readText(overrides, toml), expected, toml);
});

t.test('records are read as they were written', async (t) => {
  const cases: [Kind<unknown>, string][] = [
    [tolerations, '[{ key = "arch", operator = "Equal", effect = "NoSchedule" }]'],
    [
      rules,
      '{ arm64 = { taintsToTolerate = [{ operator = "Exists" }], requireNodeLabels = { "a.b/c" = "d" } } }',
    ],
    [oneOrMore(imageOverride), '[{ match = "a", architectures = ["arm64"] }, { match = "b", level = "v3" }]'],
  ];
  for (const [kind, toml] of cases) {
    const raw = kind.read(kind.fromText(toml, never), never);
    t.strictSame(parseToml(`a = ${formatToml(kind.write(raw))}`).value, parseToml(`a = ${toml}`).value, toml);
  }
});

t.test('architecture names of other programs are refused', async (t) => {
  const wrong =
    'x86_64=amd64 X86_64=amd64 AMD64=amd64 aarch64=arm64 Arm64=arm64 arm64v8=arm64 armhf=arm i386=386 ppc64el=ppc64le S390X=s390x';
  for (const [written, label] of wrong.split(' ').map((pair) => pair.split('=')))
    t.equal(
      checkArchitecture(written ?? ''),
      `"${written}" is not an architecture of a node; write ${label}`,
    );
  for (const right of 'amd64 arm64 arm 386 ppc64le s390x riscv64 loong64 mips Z80'.split(' '))
    t.equal(checkArchitecture(right), undefined, right);
});

t.test('a misspelled architecture is refused; a name unlike any known one is accepted', async (t) => {
  const wrong = 'amd46=amd64 arm46=arm64 amd6=amd64 s390=s390x riscv46=riscv64 mips64el=mips64le';
  for (const [written, meant] of wrong.split(' ').map((pair) => pair.split('=')))
    t.equal(
      brokenBy(architectureName, written ?? ''),
      `"${written}" is an unknown architecture; did you mean ${meant}?`,
    );
  for (const right of 'amd64 loong64 mips ppc64 Z80 mainframe'.split(' '))
    t.equal(brokenBy(architectureName, right), undefined, right);
});
