/**
 * Has every program that end-to-end tests run: what is missing is installed or built, which takes some twenty minutes on a
 * machine that has nothing. The tests would do the same one by one; this can be done beside something else.
 */
import { containerdProgram, containerdVersions, type ContainerdVersion } from './node/containerd-programs.ts';
import { oldestKubernetes } from './build.ts';
import { findApiServer } from './built.ts';
import { certManagerDefinitions, foreignDefinitions } from './chart/foreign.ts';
import { certManagerProgram } from './cluster/cert-manager/program.ts';
import { findPrograms } from './helm/programs.ts';
import { library, part, parts, say, type PartName } from './parts.ts';

const steps: readonly (() => unknown)[] = [
  ...(Object.keys(parts) as PartName[]).map((name) => () => part(name)),
  () => library('libfaketime'),
  findPrograms,
  () => findApiServer(oldestKubernetes),
  foreignDefinitions,
  certManagerDefinitions,
  certManagerProgram,
  ...(Object.keys(containerdVersions) as ContainerdVersion[]).map((minor) => () => containerdProgram(minor)),
];

let failed = 0;
for (const step of steps) {
  try {
    step();
  } catch (error) {
    // The test that needs it says so again; the others can go on.
    failed++;
    say(error instanceof Error ? error.message : String(error));
  }
}
say(failed === 0 ? 'every program is there' : `${failed} programs could not be had`);
process.exitCode = failed === 0 ? 0 : 1;
