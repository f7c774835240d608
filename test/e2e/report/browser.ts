/** Headless Chromium, driven by its DevTools protocol over a pipe. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { onPath } from '../programs/cache.ts';

export const chromium = onPath('chromium') ?? onPath('chromium-browser') ?? onPath('google-chrome');

type Fields = Readonly<Record<string, unknown>>;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
  readonly error?: { readonly message: string };
}

interface Waiting {
  readonly resolve: (result: Fields) => void;
  readonly reject: (error: Error) => void;
}

/** A browser with one page. */
export class Browser {
  /** Every event of the page, in order. */
  readonly events: { readonly method: string; readonly params: Fields }[] = [];
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #profile: string;
  readonly #waiting = new Map<number, Waiting>();
  #listeners: (() => void)[] = [];
  #session: string | undefined;
  #last = 0;

  private constructor(program: string) {
    this.#profile = mkdtempSync(join(tmpdir(), 'archwright-chromium-'));
    const flags =
      '--headless --no-sandbox --disable-gpu --remote-debugging-pipe --disable-component-update'.split(' ');
    const profile = `--user-data-dir=${this.#profile}`;
    this.#child = spawn(program, [...flags, profile, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    const [, , , input, output] = this.#child.stdio;
    this.#input = input as Writable;
    let rest = '';
    (output as Readable).setEncoding('utf8').on('data', (text: string) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop() ?? '';
      for (const message of messages) this.#take(JSON.parse(message) as Message);
    });
    this.#child.on('exit', (code) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`Chromium ended with ${code}`));
    });
  }

  static async start(program: string): Promise<Browser> {
    const browser = new Browser(program);
    const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
    browser.#session = String(sessionId);
    for (const domain of ['Page', 'Runtime', 'Log', 'Network', 'Accessibility'])
      await browser.send(`${domain}.enable`);
    return browser;
  }

  send(method: string, params: Fields = {}): Promise<Fields> {
    const id = ++this.#last;
    const message = { id, method, params, sessionId: this.#session };
    this.#input.write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Opens an address, and waits until it is loaded. */
  async open(url: string): Promise<void> {
    const loaded = this.#event('Page.loadEventFired');
    await this.send('Page.navigate', { url });
    await loaded;
  }

  /** The value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value: T }).value;
  }

  /** @param value `light` or `dark` */
  async preferColorScheme(value: string): Promise<void> {
    const features = [{ name: 'prefers-color-scheme', value }];
    await this.send('Emulation.setEmulatedMedia', { features });
  }

  /** @param key `Tab`, `Enter`, ` ` or `ArrowRight` */
  async press(key: string): Promise<void> {
    const codes: Readonly<Record<string, number>> = { Tab: 9, Enter: 13, ' ': 32, ArrowRight: 39 };
    const text = key === 'Enter' ? '\r' : key === ' ' ? ' ' : undefined;
    const event = { key, code: key === ' ' ? 'Space' : key, windowsVirtualKeyCode: codes[key] ?? 0 };
    const type = text === undefined ? 'rawKeyDown' : 'keyDown';
    await this.send('Input.dispatchKeyEvent', { type, ...event, text });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  async #event(method: string): Promise<void> {
    const start = this.events.length;
    while (!this.events.slice(start).some((event) => event.method === method))
      await new Promise<void>((resolve) => this.#listeners.push(resolve));
  }

  #take({ id, method, params = {}, result = {}, error }: Message): void {
    if (id === undefined) {
      this.events.push({ method: method ?? '', params });
      const listeners = this.#listeners;
      this.#listeners = [];
      for (const listener of listeners) listener();
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(error.message));
  }
}
