/** One request to a plugin: checks its program, runs it, and decodes the response. */
import type { Clock } from '../../../src/async/clock.ts';
import type { HostSemaphore } from '../../../src/async/semaphore.ts';
import { checkBinary, type PluginPath } from './binary.ts';
import { hostCommand } from './command.ts';
import { environmentObject, mergeEnvironment } from './environment.ts';
import { PluginError, type PluginErrorCode } from './plugin-error.ts';
import type { ProviderConfig } from '../config/provider-config.ts';
import type { Execute } from '../provider/provider.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse } from './response.ts';
import type { PluginMeter } from '../metrics.ts';
import { runProgram, type RunLimits } from './run.ts';

export interface ExecuteOptions extends PluginPath {
  /** Variables before the configured ones; called before each run. */
  readonly environment: () => Promise<readonly string[]>;
  /** Limits concurrent runs of a plugin. */
  readonly semaphore: HostSemaphore;
  readonly limits?: RunLimits | undefined;
  readonly meter?: PluginMeter | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Kills running plugins. */
  readonly stop: AbortSignal;
}

export function createExecute(config: ProviderConfig, options: ExecuteOptions): Execute {
  const { name, apiVersion, args, env } = config;
  const { hostRoot, limits, clock, meter, stop } = options;
  return async (request, abandoned) => {
    const release = await acquire(options, name, abandoned);
    let startedAt: number | undefined;
    let code: PluginErrorCode | undefined;
    try {
      // Before each run, because the program may have been replaced.
      const path = await checkBinary(name, options);
      const variables = await options.environment();
      startedAt = clock.monotonic();
      const stdout = await runProgram(
        {
          plugin: name,
          command: hostCommand(hostRoot, path, args),
          env: environmentObject(mergeEnvironment(variables, env)),
          stdin: encodeRequest(apiVersion, request),
          ...(limits && { limits }),
        },
        stop,
      );
      return decodeResponse(stdout.toString('utf8'), name, apiVersion);
    } catch (error) {
      code = error instanceof PluginError ? error.code : 'failed';
      if (!(error instanceof PluginError) || code === 'bad-response') throw error;
      const message = `error execing credential provider plugin ${name} for image ${request.image}: ${error.message}`;
      throw new PluginError(code, name, message);
    } finally {
      meter?.ran(code, startedAt === undefined ? undefined : clock.monotonic() - startedAt);
      release();
    }
  };
}

async function acquire(
  { semaphore, stop }: ExecuteOptions,
  name: string,
  abandoned: AbortSignal,
): Promise<() => void> {
  try {
    return await semaphore.enter(name, AbortSignal.any([stop, abandoned]));
  } catch {
    throw new PluginError('stopped', name, 'no caller waits for the answer any more');
  }
}
