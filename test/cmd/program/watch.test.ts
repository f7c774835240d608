import t from 'tap';
import { showAgain } from '../../../cmd/program/watch.ts';
import { neverAborted } from '../../support/never-aborted.ts';

t.test('on a terminal, a problem is printed after the screen is cleared', async (t) => {
  const printed: string[] = [];
  const write = (text: string): void => void printed.push(text);
  const io = { env: {}, stdin: process.stdin, isTerminal: true, out: write, err: write };
  const flags = { watch: true };
  const look = () => Promise.resolve({ text: '', problem: 'no answer\n', code: 3, isOver: true });
  t.equal(await showAgain({ flags, io, stop: neverAborted }, look), 3);
  t.equal(printed.at(-1), 'no answer\n');
});
