/** A TCP proxy with connections that can be reset or paused. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** @param target `https://127.0.0.1:PORT` */
export async function startCut(target: string) {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let held = false;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) {
      socket.on('error', end).on('close', end).setNoDelay(true);
      if (held) socket.pause();
    }
    near.pipe(far);
    far.pipe(near);
    if (held) for (const socket of pair) socket.unpipe();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resets every connection; new ones are taken. */
    cut: (): void => {
      for (const [near] of pairs) near.resetAndDestroy();
    },
    /** Whether bytes go through; connections stay open meanwhile. */
    hold: (wanted: boolean): void => {
      held = wanted;
      for (const [near, far] of pairs) {
        if (held) {
          near.unpipe();
          far.unpipe();
        } else {
          near.pipe(far);
          far.pipe(near);
        }
      }
    },
    close: async (): Promise<void> => {
      for (const [near] of pairs) near.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
