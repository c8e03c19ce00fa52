#!/bin/bash
# An installation for suite.py, from PyPI:   install.sh VENV 13|13.2|12|12.1|jax
#
# 13: PyTorch 2.11 for CUDA 13, with which the golden figures were made; 13.2: PyTorch 2.15 for CUDA 13.2, the
# newest; 12: PyTorch 2.8 for CUDA 12.8; 12.1: PyTorch 2.2 for CUDA 12.1, with a cuDNN that plans only on a GPU;
# jax: no PyTorch, but JAX for CUDA 13. Some 6 GB of disk. Exit code 3: the registry is not reachable.
set -eu
[ $# = 2 ] || { echo "usage: install.sh VENV 13|13.2|12|12.1|jax" >&2; exit 2; }
venv=$1
common="peft==0.21.2 accelerate==1.15.0 bitsandbytes==0.50.2 timm==1.0.31 lightning==2.6.6 pyyaml==6.0.3"
case $2 in
13) packages="torch==2.11.0 torchvision==0.26.0 transformers==5.17.0 nvidia-cuda-nvdisasm==13.5.37 setuptools==65.5.0 $common" ;;
13.2) packages="torch==2.15.0 torchvision==0.29.2 transformers==5.24.0 nvidia-cuda-nvdisasm==13.5.37 setuptools==80.9.0 $common" ;;
12) packages="torch==2.8.0 torchvision==0.23.0 transformers==4.57.1 setuptools==65.5.0 $common" ;;
12.1) packages="torch==2.2.2 torchvision==0.17.2 transformers==4.44.2 numpy<2 accelerate==1.15.0 timm==1.0.31" ;;
jax) packages="jax[cuda13]==0.10.2 pyyaml==6.0.3" ;;
*) echo "install.sh: $2, expected 13, 13.2, 12, 12.1 or jax" >&2; exit 2 ;;
esac
python3 -m venv "$venv"
# uv takes a quarter of pip's time; what it installs is compiled when it is first imported.
if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 1 --timeout 20 uv==0.13.9; then
  echo "install.sh: the registry of Python packages is not reachable" >&2
  exit 3
fi
# shellcheck disable=SC2086 # words
"$venv/bin/uv" pip install -q --no-cache --python "$venv/bin/python" $packages
"$venv/bin/python" -m pip list --disable-pip-version-check | grep -E '^(torch|jax) '
