import t from 'tap';
import { environmentLayer } from '../../../src/policy/configuration/layer.ts';
import { flagName, variableName, written, type Settings } from '../../../src/policy/settings/setting.ts';
import { settings } from '../../../src/policy/settings/all.ts';
import { hintAboutUnknown } from '../../../src/policy/settings/removed.ts';
import { never } from '../report.ts';

const all = Object.entries(settings as Settings);

t.test('variables and flags are derived from the key', async (t) => {
  const cases: [string, string, string][] = [
    ['listen', 'ARCHWRIGHT_LISTEN', 'listen'],
    ['schedulableArchitectures', 'ARCHWRIGHT_SCHEDULABLE_ARCHITECTURES', 'schedulable-architectures'],
    ['ifNotPresentCacheTime', 'ARCHWRIGHT_IF_NOT_PRESENT_CACHE_TIME', 'if-not-present-cache-time'],
    ['kubeletConfig.binDir', 'ARCHWRIGHT_KUBELET_CONFIG_BIN_DIR', 'kubelet-config-bin-dir'],
  ];
  for (const [key, variable, flag] of cases) {
    t.equal(variableName(key), variable);
    t.equal(flagName(key), flag);
  }
});

t.test('no two settings share a name', async (t) => {
  const flags = all.flatMap(([key, { shortFlag }]) => [
    flagName(key),
    ...(shortFlag === undefined ? [] : [shortFlag]),
  ]);
  t.equal(new Set([...flags, 'config', 'help', 'version']).size, flags.length + 3);
  t.equal(new Set(all.map(([key]) => variableName(key))).size, all.length);
});

t.test('every default can be written and read back', async (t) => {
  for (const [key, setting] of all) {
    const toml = written(setting, setting.default);
    if (toml !== undefined) t.strictSame(setting.kind.read(toml, never), setting.default, key);
    else t.equal(setting.default, undefined, key);
  }
});

t.test('every setting has a help text and a part', async (t) => {
  for (const [key, { help, parts, default: preset }] of all) {
    t.match(help, /^[A-Z"`].*\.$/s, key);
    t.ok(parts.length > 0, key);
    if (preset === undefined) t.ok(help.length > 20, `${key} explains what happens if it is not set`);
  }
});

t.test('every setting can be set by its variable, even if a Service can set the same name', async (t) => {
  for (const [key] of all) {
    const { values, problems } = environmentLayer(settings, { [variableName(key)]: '\0' });
    t.equal(values.size, 0, key);
    t.equal(problems[0]?.where, variableName(key), key);
  }
});

t.test('a setting is never called removed while it exists', async (t) => {
  for (const key of Object.keys(settings)) t.notMatch(hintAboutUnknown(key, []), 'it was removed', key);
});
