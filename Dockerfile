# One bundle on a slim base, not root, for a read-only root file system:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg COMMIT=$(git rev-parse HEAD) -t archwright .
# The bundle holds no machine code, so it is made once on the machine that builds, without emulation: nothing
# of another architecture is run. `npm run image` makes it outside, in place of the first stage.
# The digest is that of the index for amd64, arm64 and ppc64le; docs/internals/release.md says how to update it.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
ARG COMMIT=unknown
RUN ARCHWRIGHT_COMMIT=${COMMIT} node scripts/bundle.ts --root /program

FROM ${NODE_IMAGE}
ARG VERSION=0.1.0
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="archwright" \
      org.opencontainers.image.description="Places every pod on a node that can run all of its images" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
COPY --from=build /program /
# glibc keeps what a thread frees: 16 MiB for each fingerprint of credentials, in up to four threads. From 1 MiB on, memory is
# returned to the system at once. The threads share one arena, because most of them allocate only at the start.
ENV NODE_ENV=production MALLOC_MMAP_THRESHOLD_=1048576 MALLOC_ARENA_MAX=1
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/node", "/opt/archwright/archwright.mjs"]
