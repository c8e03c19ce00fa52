#!/usr/bin/env bash
# Makes an environment with the frameworks whose parsers tests/emit/parsers.py asks: install.sh FOLDER [PYTHON]
# PYTHON: one that has torch, transformers, accelerate, lightning and deepspeed, which the environment then sees too.
# Frameworks are installed without what they depend on: their parsers need little of it.
set -eu
folder=$1
base=${2:-python3}
"$base" -m venv "$folder"
python=$folder/bin/python
site='import site; print(site.getsitepackages()[0])'
"$base" -c "$site" >"$("$python" -c "$site")/zz_base.pth"
install() { "$python" -m pip install --quiet --no-input "$@"; }
install omegaconf hydra-core 'jsonargparse[signatures]' tyro datasets yapf addict termcolor opencv-python-headless configargparse
install --no-deps axolotl llamafactory torchtune 'torchtitan<0.2.2' litgpt ultralytics open-clip-torch mmengine trl verl oumi \
    hyperpyyaml 'ruamel.yaml<0.18' 'torchao<0.12' sentencepiece tiktoken
