# One image for every job: migrate the store, serve it, train its trials, read the results.
FROM python:3.11-slim

# CPU=1 installs the CPU build of torch first; on a GPU host build with --build-arg CPU= and pip takes the CUDA build.
ARG CPU=1
ARG TORCH="torch==2.13.0"
ARG TORCH_ARGS=""

RUN useradd --create-home search
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY mixers mixers
COPY search search
COPY service service
RUN if [ -n "$CPU" ]; then pip install --no-cache-dir $TORCH_ARGS "$TORCH"; fi \
    && pip install --no-cache-dir --constraint constraints.txt ".[postgres]"

USER search
WORKDIR /home/search
# Made here, so that the volumes mounted over them belong to this user.
ENV SEARCH_CACHE_DIR=/home/search/cache SEARCH_FILES_DIR=/home/search/files
RUN mkdir -p cache files
ENTRYPOINT ["search"]
