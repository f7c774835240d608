/** The program around CRI-O's library (`library/main.go`), which answers line by line. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** What CRI-O gets from its files and from the kubelet. Paths in `root`, which stands for `/`. */
export interface Pull {
  readonly root: string;
  readonly image: string;
  readonly authFile: string;
  /** Credential of the kubelet. Without a user there is none. */
  readonly user: string;
  readonly password: string;
  /** Whether a short name may stand for several images. */
  readonly ambiguous: boolean;
  readonly environment: Readonly<Record<string, string>>;
}

/** `error` is empty after a success. */
export interface Pulled {
  readonly digest: string;
  /** Of the image that would run. */
  readonly platform: string;
  readonly error: string;
}

export function startLibrary(program: string, env: Readonly<Record<string, string>>) {
  const child = spawn(program, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pull: async (asked: Pull): Promise<Pulled> => {
      child.stdin.write(`${JSON.stringify(asked)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error('the program around the library ended');
      const {
        Digest: digest,
        Platform: platform,
        Error: error,
      } = JSON.parse(value) as Record<string, string>;
      return { digest: digest ?? '', platform: platform ?? '', error: error ?? '' };
    },
    close: async (): Promise<void> => {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}
