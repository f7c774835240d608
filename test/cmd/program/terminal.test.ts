import t from 'tap';
import { showAgain } from '../../../cmd/program/terminal.ts';
import { KubeError, type KubeErrorCode } from '../../../src/kube/api/errors.ts';
import { neverAborted } from '../../support/never-aborted.ts';

/** Shows a result after an error. */
async function shown(watch: boolean, code: KubeErrorCode) {
  let text = '';
  const io = {
    env: {},
    stdin: process.stdin,
    isTerminal: true,
    out: (more: string) => (text += more),
    err: () => undefined,
  };
  const errors = [new KubeError(code, 'GET /version', 'no answer')];
  const look = async () => {
    const error = errors.pop();
    if (error) throw error;
    return { text: 'all is well\n', code: 0, isOver: true };
  };
  return { code: await showAgain({ flags: { watch }, io, stop: neverAborted }, look), text };
}

t.test('with --watch it goes on while the API server does not answer', async (t) => {
  const clear = '\u001B[H\u001B[2J';
  t.strictSame(await shown(true, 'unavailable'), {
    code: 0,
    text: `${clear}the cluster does not answer: no answer\n${clear}all is well\n`,
  });
  await t.rejects(shown(true, 'forbidden'), /no answer/);
  await t.rejects(shown(false, 'unavailable'), /no answer/);
});
