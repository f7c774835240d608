import t from 'tap';
import { windowsVersionMatches } from '../../src/nodes/windows-version.ts';

t.test('which containers a Windows host runs', async (t) => {
  const cases: [host: string, container: string, runs: boolean][] = [
    ['10.0.17763', '10.0.17763.5329', true],
    ['10.0.17763', '10.0.20348.1', false],
    ['10.0.20348', '10.0.17763.1', false],
    ['10.0.20348', '10.0.20348.1', true],
    ['10.0.20348', '10.0.25398.1', false],
    ['10.0.25398', '10.0.20348.1', true],
    ['10.0.26100', '10.0.20348.1', true],
    ['10.0.26100', '10.0.25398.1', true],
    ['10.0.26100', '10.0.26100.1', true],
    ['10.0.26200', '10.0.20348.1', true],
    ['10.0.26200', '10.0.17763.1', false],
    ['10.1.20348', '10.0.20348', false],
    ['10.0.20348', '', true],
    ['', '10.0.17763', true],
    ['10.0.20348', 'odd', false],
  ];
  for (const [host, container, runs] of cases)
    t.equal(windowsVersionMatches(host, container), runs, `${container} on ${host}`);
});
