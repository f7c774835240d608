/** One request to a plugin: checks its program, runs it, and decodes the response. */
import type { Clock } from '../../../src/async/clock.ts';
import type { HostSemaphore } from '../../../src/async/semaphore.ts';
import type { ProviderConfig } from '../config/provider-config.ts';
import type { PluginMeter } from '../metrics.ts';
import type { Execute } from '../provider/provider.ts';
import { checkBinary, type PluginPath } from './binary.ts';
import { environmentObject, mergeEnvironment } from './environment.ts';
import { PluginError, type PluginErrorCode } from './plugin-error.ts';
import { decodeResponse, encodeRequest } from './protocol.ts';
import { hostCommand, runProgram, type RunLimits } from './run.ts';

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
  const { name: plugin, apiVersion, args } = config;
  const { hostRoot, limits, clock, meter, semaphore, stop } = options;
  return async (request, abandoned) => {
    const release = await semaphore.enter(plugin, AbortSignal.any([stop, abandoned])).catch(() => {
      throw new PluginError('stopped', plugin, 'no caller waits for the answer any more');
    });
    let startedAt: number | undefined;
    let code: PluginErrorCode | undefined;
    try {
      // Before each run, because the program may have been replaced.
      const path = await checkBinary(plugin, options);
      const variables = mergeEnvironment(await options.environment(), config.env);
      startedAt = clock.monotonic();
      const command = hostCommand(hostRoot, path, args);
      const env = environmentObject(variables);
      const stdin = encodeRequest(apiVersion, request);
      const stdout = await runProgram({ plugin, command, env, stdin, limits }, stop);
      return decodeResponse(stdout.toString('utf8'), plugin, apiVersion);
    } catch (error) {
      code = error instanceof PluginError ? error.code : 'failed';
      if (!(error instanceof PluginError) || code === 'bad-response') throw error;
      const message = `error execing credential provider plugin ${plugin} for image ${request.image}: ${error.message}`;
      throw new PluginError(code, plugin, message);
    } finally {
      meter?.(code, startedAt === undefined ? undefined : clock.monotonic() - startedAt);
      release();
    }
  };
}
