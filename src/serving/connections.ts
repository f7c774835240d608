/**
 * The open connections of a server. A remote address may have as many as are still free, so one address gets
 * half of all, and two get two thirds. Behind kube-proxy or konnectivity all API servers may have one
 * address; each of them needs about 100.
 */
import type { Socket } from 'node:net';

export class Connections {
  readonly #most: number;
  readonly #open = new Set<Socket>();
  readonly #byAddress = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#open.size;
  }

  /** @returns false if the address has too many; the connection was closed then */
  add(socket: Socket): boolean {
    const { remoteAddress: address = '' } = socket;
    const held = this.#byAddress.get(address) ?? 0;
    // Any address gets one.
    if (held > 0 && held + 1 > this.#most - this.#open.size) {
      socket.destroy();
      return false;
    }
    this.#open.add(socket);
    this.#byAddress.set(address, held + 1);
    socket.once('close', () => this.#remove(socket, address));
    return true;
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #remove(socket: Socket, address: string): void {
    this.#open.delete(socket);
    const left = (this.#byAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#byAddress.set(address, left);
    else this.#byAddress.delete(address);
  }
}
