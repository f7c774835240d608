/** Valid and invalid values of settings, generated from their schemas. */
import * as fc from 'fast-check';
import type { JsonSchema, TomlValue } from '../../src/policy/settings/setting.ts';

/** Valid, invalid and edge cases for every kind of text. */
const texts = [
  'amd64 arm64 arm 386 s390x riscv64 loong64 aarch64 x86_64 AMD64 Arm64 amd46 ARM46 ppc mainframe *'.split(
    ' ',
  ),
  'NoSchedule example.com/pool a.b/c pool b_c -a a/b/c A.com/x /x'.split(' '),
  ['', ' ', 'a b', 'x'.repeat(63), 'x'.repeat(64), `${'d.'.repeat(126)}d/n`, `${'d.'.repeat(126)}dd/n`],
  '0s 1ms 500ms 1s 90s 1m 5m 15m 1h 1h30m 1d 7d 365d 3650d 3651d 1m1h 1.5h -1s 5'.split(' '),
  ['0000000000001s', '99999999999999999999d', '9999999999999ms'],
  '64Mi 1024 1Ki 1Mi 1023Ki 16Gi 17Gi 1Ti 64MB 99999999999999999999Gi'.split(' '),
  'docker.io registry.example.com:5000 localhost:5000 10.0.0.1 10.0.0.256 10.1 [::1]:5000 [1:2] ::1'.split(
    ' ',
  ),
  'a.5 a.0x1f 0x a.5x 5-a a.01x a_b.io -a.io a.io: a.io:65535 a.io:65536 https://docker.io'.split(' '),
  ['x.'.repeat(126) + 'x', 'x.'.repeat(126) + 'xy', '[::ffff:1.2.3.4]', '[1::2::3]', '[fd00::1]', 'a.xn--a'],
  '*.corp.example.com a*.io:5000 a.io/b/../c a.io/...c a.io/b/.c 0*'.split(' '),
  'ghcr.io/team/** **/** a/*/*/*/*/* ghcr.io/Team a.io/b:c'.split(' '),
  'docker.io=mirror.example.com docker.io=http://m:5000/a a=b=c docker.io= =m a.io=ftp://m a.io=m/../x'.split(
    ' ',
  ),
  '/etc/containerd /etc/containerd/config.toml etc/x /'.split(' '),
  '2.1.4 v1.7 two pool=system !gpu,zone A_B 1A kube-* ku*be ***** Kube kube_x'.split(' '),
  'registry.example.com/team/*:latest a@sha256:0 a@ a:b:c a:5000/b:c@d é a\u00a0b'.split(' '),
  ['*a'.repeat(8), '*a'.repeat(9), '*a'.repeat(4), 'a'.repeat(512), 'a'.repeat(513)],
  ['a\nb', 'a\u007fb', '"\\', '<&>', 'a\u2028b', 'a\u0085b', 'all', 'true', '3'],
].flat();

const anyText = fc.constantFrom(...texts);

/** @param text for names and values */
export function valuesOf(schema: JsonSchema, text: fc.Arbitrary<string> = anyText): fc.Arbitrary<TomlValue> {
  const { anyOf, enum: words, type, items, properties, additionalProperties } = schema as Schema;
  if (anyOf) return fc.oneof(...anyOf.map((each) => valuesOf(each, text)));
  if (words) return fc.oneof({ arbitrary: fc.constantFrom(...words), weight: 4 }, text);
  const types = typeof type === 'string' ? [type] : (type ?? []);
  return fc.oneof(
    ...types.map((each): fc.Arbitrary<TomlValue> => {
      switch (each) {
        case 'boolean':
          return fc.boolean();
        case 'integer':
          return numbers(schema);
        case 'array':
          return fc.array(valuesOf(items ?? {}, text), { maxLength: 2 });
        case 'object': {
          if (!properties)
            return fc.dictionary(text, valuesOf((additionalProperties || {}) as JsonSchema, text), {
              maxKeys: 2,
            });
          const fields = Object.entries(properties).map(
            ([key, inner]) => [key, valuesOf(inner, text)] as const,
          );
          const all: Record<string, fc.Arbitrary<TomlValue>> = Object.fromEntries(fields);
          return fc.record(all, { requiredKeys: [] }) as fc.Arbitrary<Record<string, TomlValue>>;
        }
        default:
          return text;
      }
    }),
  );
}

interface Schema {
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly string[];
  readonly type?: string | readonly string[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
}

function numbers({ minimum = 0, maximum = 1000 }: JsonSchema): fc.Arbitrary<number> {
  const [low, high] = [Number(minimum), Number(maximum)];
  return fc.constantFrom(low, low + 1, high, low - 1, high + 1, Math.floor((low + high) / 2), low + 0.5);
}
