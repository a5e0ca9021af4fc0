# Two stages: the image holds the built program and the built board, not what made them, and no packages. Debian's glibc
# image is the tested one; its digest is that of all its platforms, and its Node is the one that runs the tests.
FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY src ./src
RUN npm run bundle

FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
# Without an upstream the image refuses to start: the built-in chain is not for production. One arena of malloc saves
# five megabytes: the relay has one thread that allocates much. A fixed threshold saves eight more: malloc gives back what
# the start freed. The heap may take three quarters of the container's memory; sockets and SQLite need the rest.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data DEMO=false
ENV MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072 NODE_OPTIONS=--max-old-space-size-percentage=75
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /app/dist ./dist
RUN mkdir -p /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080
# The relay sends every client its position and then ends: give it PRE_DRAIN, DRAIN and some seconds more before it is killed.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# A small young generation: with thousands of silent listeners it would be most of the memory. No code needs __proto__.
CMD ["node", "--max-semi-space-size=2", "--disable-proto=delete", "dist/main.js"]
