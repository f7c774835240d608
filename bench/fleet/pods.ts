/** The pods to create: two images each, so at the end each webhook has used each image many times. */

/** A step coprime to the number of images: pairs differ. */
const step = 7;

/** The AdmissionReview of one pod. */
export function podReview(index: number, images: readonly string[]): string {
  const names = [images[index % images.length], images[(index * step + 1) % images.length]];
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: `00000000-0000-0000-0000-${String(index).padStart(12, '0')}`,
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace: 'shop',
      operation: 'CREATE',
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { generateName: 'app-', namespace: 'shop' },
        spec: {
          containers: names.map((image, position) => ({
            name: `container-${position}`,
            image,
            imagePullPolicy: 'IfNotPresent',
          })),
        },
      },
    },
  });
}
