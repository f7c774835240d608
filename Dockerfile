# One bundle on a slim base, not root, for a read-only root file system:
#   docker buildx build --platform linux/amd64,linux/arm64 -t archwright .
# The bundle holds no machine code, so it is made once on the machine that builds, without emulation.
ARG NODE_VERSION=24
FROM --platform=$BUILDPLATFORM node:${NODE_VERSION}-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
ARG COMMIT=unknown
RUN ARCHWRIGHT_COMMIT=${COMMIT} npm run bundle

FROM node:${NODE_VERSION}-slim
LABEL org.opencontainers.image.title="archwright" \
      org.opencontainers.image.description="Places every pod on a node that can run all of its images" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /build/dist /opt/archwright
COPY LICENSE /opt/archwright/LICENSE
RUN printf '#!/bin/sh\nexec node /opt/archwright/archwright.mjs "$@"\n' > /usr/local/bin/archwright \
 && chmod 0755 /usr/local/bin/archwright
ENV NODE_ENV=production
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/node", "/opt/archwright/archwright.mjs"]
