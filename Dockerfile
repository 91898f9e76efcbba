# sweeplib in a container; results are in the folder that is mounted at /desk:
#   docker build --tag sweeplib .
#   docker run --rm --volume "$PWD:/desk" sweeplib sweep mine.yaml
FROM python:3.13-slim
RUN useradd --create-home sweep && mkdir /desk && chown sweep /desk
COPY . /source
RUN python -m pip install --no-cache-dir -c /source/constraints.txt "/source[slurm,s3,export]" && rm -r /source
ENV SWEEPLIB_PYTHON=python
USER sweep
WORKDIR /desk
ENTRYPOINT ["sweeplib"]
CMD ["--help"]
