# One image for every process of a stack: compose.yaml says which one a container is.
FROM python:3.11-slim
COPY . /src
RUN pip install --no-cache-dir --require-hashes -r /src/requirements.lock \
    && pip install --no-cache-dir --no-deps --no-build-isolation /src && rm -rf /src \
    && install -d -o 10001 -g 10001 -m 700 /data /run/hivepipe
USER 10001:10001
WORKDIR /data
