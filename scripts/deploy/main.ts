/** `npm run deploy`: writes the plain manifests, by Helm. `npm run e2e:chart` fails if they are outdated. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { render } from '../../test/e2e/chart/helm.ts';
import { deployFiles } from './files.ts';

for (const [path, make] of Object.entries(deployFiles)) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    make((values, args) => render('helm4', values, args)),
  );
  process.stdout.write(`${path}\n`);
}
