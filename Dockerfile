# An image of ctxproxy: docker build -t ctxproxy .
FROM python:3.12-slim

# Read by glibc when a process starts: every large body given back to the kernel costs more than copying it. The numbers of scripts/serve.
ENV MALLOC_MMAP_THRESHOLD_=1073741824 \
    MALLOC_TRIM_THRESHOLD_=1073741824 \
    CTXPROXY_LISTEN__HOST=0.0.0.0 \
    CTXPROXY_DATA_DIR=/data

COPY . /app
RUN /app/scripts/bootstrap \
    && useradd --system --uid 10001 --no-create-home ctxproxy \
    && install -d -o ctxproxy -g ctxproxy -m 0700 /data

# A number, so that Kubernetes can see that it is not root
USER 10001
VOLUME /data
EXPOSE 8787
ENTRYPOINT ["/app/scripts/serve"]
