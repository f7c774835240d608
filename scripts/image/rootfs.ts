/** The root file system of the image: Node, its libraries, and the program. No shell, no package manager. */
import { chmodSync, copyFileSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { placeLibraries, type DebianPackage } from './debian.ts';
import { placeNode, type Architecture } from './node-runtime.ts';

/** The user that the image runs as. */
const user = 65_532;

/**
 * Node and its dependencies: a layer that stays the same until one of them is updated.
 * @returns the Debian packages in it
 */
export function makeBase(architecture: Architecture, cache: string, root: string): readonly DebianPackage[] {
  rmSync(root, { recursive: true, force: true });
  for (const folder of [
    'usr/bin',
    'usr/sbin',
    'usr/lib',
    'usr/local/bin',
    'etc',
    'tmp',
    'host',
    'var/lib/archwright',
  ]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const folder of ['bin', 'sbin', 'lib']) symlinkSync(`usr/${folder}`, join(root, folder));
  if (architecture === 'amd64') {
    mkdirSync(join(root, 'usr/lib64'));
    symlinkSync('usr/lib64', join(root, 'lib64'));
  }
  const packages = placeLibraries(architecture, cache, root);
  placeNode(architecture, cache, join(root, 'usr/local/bin/node'));
  chmodSync(join(root, 'usr/local/bin/node'), 0o755);
  chmodSync(join(root, 'tmp'), 0o1777);
  writeFileSync(
    join(root, 'etc/passwd'),
    `root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:${user}:${user}:nonroot:/nonexistent:/sbin/nologin\n`,
  );
  writeFileSync(join(root, 'etc/group'), `root:x:0:\nnonroot:x:${user}:\n`);
  // Otherwise glibc would query DNS before /etc/hosts.
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  return packages;
}

/** The bundle, and the command `archwright` for `kubectl exec`; the same for every architecture. */
export function makeProgram(bundle: string, root: string): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(join(root, 'opt/archwright'), { recursive: true });
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  // The folder may also contain images from earlier builds.
  for (const entry of readdirSync(bundle, { withFileTypes: true })) {
    if (entry.isFile()) copyFileSync(join(bundle, entry.name), join(root, 'opt/archwright', entry.name));
  }
  copyFileSync('LICENSE', join(root, 'opt/archwright/LICENSE'));
  const command = join(root, 'usr/local/bin/archwright');
  // There is no shell, and a file without an extension is CommonJS.
  writeFileSync(command, "#!/usr/local/bin/node\nimport('/opt/archwright/archwright.mjs');\n");
  chmodSync(command, 0o755);
}
