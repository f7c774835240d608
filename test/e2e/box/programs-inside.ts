/** Runs in the box of `box.test.ts`: prints the path of a cached program, and the error for a missing one. */
import { crioLibraryProgram } from '../programs/crio.ts';
import { distributionProgram } from '../programs/helm.ts';

function outcome(find: () => string): string {
  try {
    return find();
  } catch (error) {
    return String(error);
  }
}

process.stdout.write(`${outcome(distributionProgram)}\n${outcome(crioLibraryProgram)}\n`);
