# One image for both the API and the worker. `docker compose` starts both from it.
FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# The Temporal client uses the system's certificate authorities for TLS.
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json .npmrc ./
COPY scripts/ensure-dependencies.mjs scripts/
RUN node scripts/ensure-dependencies.mjs && npm cache clean --force
COPY . .
# The worker loads its workflows in this form. The image is read-only for its user, so it is made here.
RUN node -e "import('./worker/workflow-bundle.ts').then((one) => one.workflowBundle())"
# A new volume takes the owner of the directory on which it is mounted.
RUN mkdir -p /data /exports && chown node:node /data /exports
ENV SLUICE_DATA_DIR=/data
VOLUME /data
USER node
EXPOSE 8000 9464
# Node is process 1, so that it receives signals. The worker runs `node worker/main.ts`.
CMD ["node", "--max-semi-space-size=32", "--heap-growing-percent=100", "api/main.ts"]
