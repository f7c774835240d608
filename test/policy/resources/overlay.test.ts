import t from 'tap';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { collectResources } from '../../../src/policy/resources/collection.ts';
import { followLogLevel, overlaid } from '../../../src/policy/resources/overlay.ts';
import { clusterConfig } from './objects.ts';
import { createSource } from './source.ts';

t.test('the log level follows the custom resource, else the configuration', async (t) => {
  const clusterConfigs = createSource();
  let current: Configuration = { ...defaultConfiguration(), logLevel: 'warn' };
  const listeners: ((configuration: Configuration) => void)[] = [];
  const configuration = {
    current: () => current,
    onChange: (listener: (configuration: Configuration) => void): void => {
      listeners.push(listener);
    },
  };
  const log = { level: 'info' };
  followLogLevel({ log, configuration, resources: collectResources({ clusterConfigs }) });
  t.equal(log.level, 'warn', 'from the configuration');
  const cases = { Normal: 'info', Debug: 'debug', Trace: 'trace', TraceAll: 'trace' };
  for (const [logVerbosity, level] of Object.entries(cases)) {
    clusterConfigs.put(clusterConfig({ logVerbosity }));
    t.equal(log.level, level, logVerbosity);
  }
  current = { ...current, logLevel: 'error' };
  for (const listener of listeners) listener(current);
  t.equal(log.level, 'trace', 'a changed configuration does not override it');
  clusterConfigs.put(clusterConfig({}));
  t.equal(log.level, 'error', 'without logVerbosity the configuration applies');
  clusterConfigs.put(clusterConfig({ logVerbosity: 'Debug' }));
  clusterConfigs.remove('cluster');
  t.equal(log.level, 'error');
});

t.test(
  'the custom resource overrides the configuration; unchanged results are the same object',
  async (t) => {
    const clusterConfigs = createSource();
    let from = defaultConfiguration();
    const configuration = overlaid(() => from, collectResources({ clusterConfigs }));
    t.equal(configuration(), from);
    clusterConfigs.put(clusterConfig({ plugins: { execFormatErrorMonitor: { enabled: false } } }));
    const over = configuration();
    t.strictSame(over, { ...from, execFormatErrorMonitor: false });
    t.equal(configuration(), over);
    from = { ...from, evictionsPerMinute: 1 };
    t.strictSame(configuration(), { ...from, execFormatErrorMonitor: false });
    from = { ...from, execFormatErrorMonitor: false };
    clusterConfigs.put(
      clusterConfig({ logVerbosity: 'Debug', plugins: { execFormatErrorMonitor: { enabled: true } } }),
    );
    t.strictSame(configuration(), { ...from, execFormatErrorMonitor: true, logLevel: 'debug' });
    clusterConfigs.put(clusterConfig({ fallbackArchitecture: 'arm64' }));
    t.equal(configuration(), from, 'placement fields are not overlaid');
  },
);
