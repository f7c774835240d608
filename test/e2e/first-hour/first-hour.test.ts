/**
 * A new user's first hour: README.md word for word (`readme.ts`), in a cluster with a real node. First agents
 * cannot start, then they have wrong credentials, then right ones. Each time `helm test`, `status`, events,
 * `explain` and `report` name the cause and the remedy. Variables: see `../helm/helm.test.ts`.
 */
import t from 'tap';
import { runSuite } from '../helm/suite.ts';

/** About two minutes on two cores; a loaded machine needs more. */
const timeoutMs = 12 * 60_000;

void t.test(
  'README.md works as written, with mistakes and their remedies',
  { timeout: timeoutMs + 300_000 },
  (t) => runSuite(t, { entry: new URL('inside.ts', import.meta.url), timeoutMs }),
);
