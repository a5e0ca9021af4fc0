# Two stages: the image holds the built program and the built board, not what made them, and no packages. Debian's glibc
# image is the tested one; its digest is that of all its platforms, and its Node is the one that runs the tests.
ARG NODE_VERSION=24.21.0
ARG NODE_DIGEST=sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
# Any image with this Node, npm and a user named node: --build-arg BASE=…
ARG BASE=node:${NODE_VERSION}-bookworm-slim@${NODE_DIGEST}

# The built files are the same on every platform, so they are built on that of the builder.
FROM --platform=$BUILDPLATFORM ${BASE} AS build
# A file in the build, such as one of its volumes, with certificates that npm has to trust beside its own.
ARG CA=
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The packages that the program holds, and what bundles them; not Node, which is there, nor the packages of the tests.
RUN npm pkg delete optionalDependencies \
 && NODE_EXTRA_CA_CERTS=$CA npm install --no-save --ignore-scripts --omit=dev --save-prod "vite@$(npm pkg get devDependencies.vite | tr -d '"')"
COPY tsconfig.json README.md LICENSE ./
COPY src ./src
ARG REVISION=
# The program names the commit that it is built from, and reads it as in a clone.
RUN mkdir .git && echo "$REVISION" > .git/HEAD && npm run bundle

FROM ${BASE}
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="stocktape" \
      org.opencontainers.image.description="A streaming relay for tokenized stocks" \
      org.opencontainers.image.source="https://github.com/stocktape/stocktape" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Without an upstream the image refuses to start: the built-in chain is not for production. One arena of malloc saves
# five megabytes: the relay has one thread that allocates much. A fixed threshold saves eight more: malloc gives back what
# the start freed. The heap may take three quarters of the container's memory; sockets and SQLite need the rest.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data DEMO=false
ENV MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072 NODE_OPTIONS=--max-old-space-size-percentage=75
WORKDIR /app
COPY --from=build /app/dist ./
RUN mkdir -p /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080
# The relay sends every client its position and then ends: give it PRE_DRAIN, DRAIN and some seconds more before it is killed.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# A small young generation: with thousands of silent listeners it would be most of the memory. No code needs __proto__.
ENTRYPOINT ["node", "--max-semi-space-size=2", "--disable-proto=delete", "/app/main.js"]
# The commands of the program: `docker run … tail AAPLc`, `docker run … doctor`, `docker run … --role ingest`.
CMD ["serve"]
