/** A CRI client for the container runtime's unix socket: the calls with which a kubelet pulls an image. */
import { credentials, loadPackageDefinition, type Client, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface PullAuth {
  readonly username: string;
  readonly password: string;
}

export type Pulled =
  | { readonly digest: string; readonly id: string; readonly error?: undefined }
  | {
      readonly digest?: undefined;
      readonly id?: undefined;
      readonly error: { readonly code: number; readonly message: string };
    };

type Method<Request, Response> = (
  request: Request,
  options: { readonly deadline: number },
  callback: (error: ServiceError | null, response: Response) => void,
) => void;

interface ImageClient extends Client {
  readonly imageStatus: Method<{ image: { image: string } }, { image: { repoDigests: string[] } | null }>;
  readonly pullImage: Method<{ image: { image: string }; auth?: PullAuth }, { imageRef: string }>;
}

type ImageClientType = new (
  target: string,
  creds: ReturnType<typeof credentials.createInsecure>,
  options: Readonly<Record<string, number>>,
) => ImageClient;

/** containerd waits up to 30 s for a header; no fault of these tests makes it wait that long. */
const callTimeoutMs = 40_000;

/**
 * Connects and waits until the image service answers.
 * @param readyTimeoutMs how long that may take
 * @throws ServiceError if it does not answer
 */
export async function connectCri(socket: string, readyTimeoutMs: number) {
  const definition = loadSync(join(import.meta.dirname, 'cri.proto'), { keepCase: false, defaults: true });
  const { runtime } = loadPackageDefinition(definition) as unknown as {
    runtime: { v1: { ImageService: ImageClientType } };
  };
  // containerd is there within 100 ms; gRPC would wait for a second before it tries again.
  const options = { 'grpc.initial_reconnect_backoff_ms': 20, 'grpc.max_reconnect_backoff_ms': 100 };
  const client = new runtime.v1.ImageService(`unix:${socket}`, credentials.createInsecure(), options);

  function call<Request, Response>(method: Method<Request, Response>, request: Request): Promise<Response> {
    return new Promise((resolve, reject) => {
      method.call(client, request, { deadline: Date.now() + callTimeoutMs }, (error, response) => {
        if (error) reject(error);
        else resolve(response);
      });
    });
  }

  const until = Date.now() + readyTimeoutMs;
  await new Promise<void>((resolve, reject) => {
    client.waitForReady(until, (error) => (error ? reject(error) : resolve()));
  });
  // The socket is there before the plugin behind it is.
  while (Date.now() < until) {
    const problem = await call(client.imageStatus, { image: { image: 'localhost/none:1' } }).catch(
      (error: unknown) => error as ServiceError,
    );
    if (!(problem instanceof Error) || !/not initialized|unavailable/i.test(problem.message)) break;
    await delay(10);
  }
  return {
    /**
     * Pulls an image as the kubelet would.
     * @param auth absent: no credential, unlike an empty one
     * @returns the digest of the manifest or index and the image's id (config digest), or the runtime's error
     */
    pull: async (image: string, auth: PullAuth | undefined): Promise<Pulled> => {
      const spec = { image: { image } };
      try {
        const { imageRef } = await call(client.pullImage, { ...spec, ...(auth ? { auth } : {}) });
        const { image: found } = await call(client.imageStatus, { image: { image: imageRef } });
        const repository = image.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
        const digests = found?.repoDigests ?? [];
        const own = digests.find((digest) => digest.startsWith(`${repository}@`)) ?? digests[0] ?? '';
        return { digest: own.slice(own.indexOf('@') + 1), id: imageRef };
      } catch (error) {
        const { code, details } = error as ServiceError;
        return { error: { code, message: details } };
      }
    },
    close: (): void => client.close(),
  };
}
