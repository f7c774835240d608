/** A temporary directory for the demo's files, with resources to close before its removal. */
import { mkdirSync, rmSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Workspace {
  readonly dir: string;
  /**
   * Writes a file, readable by its owner only, with the directories above it.
   * @param path inside the workspace
   * @returns the whole path
   */
  write(path: string, text: string): Promise<string>;
  /** Adds a step of `close`; the last one added runs first. */
  onClose(close: () => unknown): void;
  /** Closes everything, despite failures, and removes the directory. */
  close(): Promise<void>;
}

export async function openWorkspace(): Promise<Workspace> {
  const dir = await mkdtemp(join(tmpdir(), 'archwright-demo-'));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  // A second Ctrl-C does not wait for `close`, and a process at its start may have written again.
  process.on('exit', remove);
  const closers: (() => unknown)[] = [];
  return {
    dir,
    write: async (path, text) => {
      const whole = join(dir, path);
      mkdirSync(dirname(whole), { recursive: true });
      await writeFile(whole, text, { mode: 0o600 });
      return whole;
    },
    onClose: (close) => {
      closers.push(close);
    },
    close: async () => {
      const failures: unknown[] = [];
      for (const close of closers.splice(0).reverse()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      remove();
      if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed');
    },
  };
}
