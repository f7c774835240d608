/** Runs in the box of `box.test.ts`: prints the path of a program that the cache has, and the error for one that it does not have. */
import { craneProgram, distributionProgram } from '../programs/helm.ts';

function outcome(find: () => string): string {
  try {
    return find();
  } catch (error) {
    return String(error);
  }
}

process.stdout.write(`${outcome(craneProgram)}\n${outcome(distributionProgram)}\n`);
