/** The AdmissionReview that is measured: a pod of a ReplicaSet as the API server sends it, about 4 KB. */
export const images = [
  'registry.example/shop/web:1.4.2',
  'registry.example/mesh/proxy:2.1',
  'busybox:1.36',
] as const;

const probe = {
  httpGet: { path: '/healthz', port: 8080, scheme: 'HTTP' },
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
};
const serviceAccountMount = {
  name: 'kube-api-access-x7k2p',
  readOnly: true,
  mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
};
const defaults = {
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
  imagePullPolicy: 'IfNotPresent',
};

const pod = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: {
    generateName: 'web-7c9d8f6b5-',
    namespace: 'shop',
    creationTimestamp: null,
    labels: {
      app: 'web',
      'pod-template-hash': '7c9d8f6b5',
      'app.kubernetes.io/name': 'web',
      'app.kubernetes.io/part-of': 'shop',
    },
    annotations: {
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': '8080',
      'checksum/config': 'a'.repeat(64),
    },
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        name: 'web-7c9d8f6b5',
        uid: 'c5a3c1de-8d4a-4b73-a42f-4d1f9c0e5b11',
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  },
  spec: {
    volumes: [
      { name: 'config', configMap: { name: 'web', defaultMode: 420 } },
      { name: 'tmp', emptyDir: {} },
      {
        name: serviceAccountMount.name,
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
            { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            {
              downwardAPI: {
                items: [
                  { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } },
                ],
              },
            },
          ],
          defaultMode: 420,
        },
      },
    ],
    initContainers: [
      {
        name: 'wait',
        image: images[2],
        command: ['sh', '-c', 'until nc -z db 5432; do sleep 1; done'],
        resources: {},
        volumeMounts: [serviceAccountMount],
        ...defaults,
      },
    ],
    containers: [
      {
        name: 'web',
        image: images[0],
        ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
        env: Array.from({ length: 14 }, (_, index) => ({
          name: `SETTING_${index}`,
          value: `value of setting number ${index}`,
        })),
        resources: { limits: { memory: '512Mi' }, requests: { cpu: '250m', memory: '256Mi' } },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/web' },
          { name: 'tmp', mountPath: '/tmp' },
          serviceAccountMount,
        ],
        livenessProbe: probe,
        readinessProbe: probe,
        securityContext: {
          runAsNonRoot: true,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
        },
        ...defaults,
      },
      {
        name: 'proxy',
        image: images[1],
        resources: { requests: { cpu: '50m', memory: '64Mi' } },
        volumeMounts: [serviceAccountMount],
        ...defaults,
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    serviceAccountName: 'web',
    serviceAccount: 'web',
    securityContext: {},
    schedulerName: 'default-scheduler',
    tolerations: [
      {
        key: 'node.kubernetes.io/not-ready',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
      {
        key: 'node.kubernetes.io/unreachable',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
    ],
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
  },
  status: {},
};

export const review = JSON.stringify({
  kind: 'AdmissionReview',
  apiVersion: 'admission.k8s.io/v1',
  request: {
    uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    requestKind: { group: '', version: 'v1', kind: 'Pod' },
    requestResource: { group: '', version: 'v1', resource: 'pods' },
    namespace: 'shop',
    operation: 'CREATE',
    userInfo: {
      username: 'system:serviceaccount:kube-system:replicaset-controller',
      groups: ['system:serviceaccounts', 'system:authenticated'],
    },
    object: pod,
    oldObject: null,
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
  },
});
