#!/usr/bin/env python3
"""Do the frameworks' own parsers take what `plimsoll emit` writes? parsers.py PLIMSOLL [NAME...]

Each function below hands one emitted text to the parser of a framework that is installed for this Python, and returns the sizes
that it read back; they have to be the ones that were emitted. A framework that is not installed is a skip, and it is said.
tests/emit/install.sh makes an environment with all of them.

    RUN   the answer that is emitted: its sizes are prime, so that none is taken for another
"""
import contextlib
import functools
import importlib.util
import io
import os
import shlex
import subprocess
import sys
import tempfile
from unittest import mock

RUN = {'micro': 3, 'accumulation': 5, 'dp': 2, 'seq': 704}
RUN['global'] = RUN['micro'] * RUN['accumulation'] * RUN['dp']

HERE = os.path.dirname(os.path.abspath(__file__))
RESULT = os.path.join(HERE, 'result.json')
CASES = []
FOLDER = tempfile.TemporaryDirectory(prefix='plimsoll-emit-')


class Missing(Exception):
    """A package that is not installed."""


def case(form, *packages, sharding='ddp'):
    """Registers a parser of `plimsoll emit RESULT form`; `packages`: the modules that it needs."""
    def register(function):
        CASES.append((form, packages, function, sharding))
        return function
    return register


def as_file(text, name):
    path = os.path.join(tempfile.mkdtemp(dir=FOLDER.name), name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def run_python(text):
    values = {}
    exec(compile(text, 'emitted', 'exec'), values)  # pylint: disable=exec-used
    return values


def sizes(arguments, **names):
    """{'micro': arguments.NAME, ...}"""
    return {role: getattr(arguments, name) for role, name in names.items()}


def with_bf16(function):
    """Tells transformers that there is a GPU with bf16: it looks for one when it reads the arguments."""
    @functools.wraps(function)
    def patched(text):
        with mock.patch('transformers.training_args.is_torch_bf16_gpu_available', return_value=True):
            return function(text)
    return patched


def hf_sizes(arguments):
    return sizes(arguments, micro='per_device_train_batch_size', accumulation='gradient_accumulation_steps')


# --- Hugging Face ------------------------------------------------------------------------------------------------------------

@case('hf.python', 'transformers', 'torch', 'accelerate')
@with_bf16
def hf_python(text):
    arguments = run_python(text)['arguments']
    assert arguments.bf16 and not arguments.fp16 and arguments.gradient_checkpointing
    assert arguments.optim == 'adamw_torch_fused', arguments.optim
    return hf_sizes(arguments)


def hf_parser():
    from transformers import HfArgumentParser, TrainingArguments
    return HfArgumentParser(TrainingArguments)


@case('hf.yaml', 'transformers', 'torch', 'accelerate')
@with_bf16
def hf_yaml(text):
    return hf_sizes(hf_parser().parse_yaml_file(as_file(text, 'a.yaml'))[0])


@case('hf.yaml', 'transformers', 'torch', 'accelerate', sharding='fsdp')
@with_bf16
def hf_yaml_fsdp(text):
    arguments = hf_parser().parse_yaml_file(as_file(text, 'a.yaml'))[0]
    assert arguments.fsdp_plugin_args['fsdp_version'] == 2, arguments.fsdp_plugin_args
    return hf_sizes(arguments)


@case('hf.cli', 'transformers', 'torch', 'accelerate', sharding='fsdp')
@with_bf16
def hf_cli_fsdp(text):
    arguments = hf_parser().parse_args_into_dataclasses(shlex.split(text))[0]
    assert arguments.fsdp_plugin_args['fsdp_version'] == 2, arguments.fsdp_plugin_args
    return hf_sizes(arguments)


@case('hf.json', 'transformers', 'torch', 'accelerate')
@with_bf16
def hf_json(text):
    return hf_sizes(hf_parser().parse_json_file(as_file(text, 'a.json'))[0])


@case('hf.cli', 'transformers', 'torch', 'accelerate')
@with_bf16
def hf_cli(text):
    return hf_sizes(hf_parser().parse_args_into_dataclasses(shlex.split(text))[0])


@case('trl.python', 'trl', 'datasets')
@with_bf16
def trl_python(text):
    arguments = run_python(text)['arguments']
    return {**hf_sizes(arguments), 'seq': arguments.max_length}


@case('trl.cli', 'trl', 'datasets')
@with_bf16
def trl_cli(text):
    from trl import SFTConfig, TrlParser
    arguments = TrlParser(SFTConfig).parse_args_and_config(shlex.split(text))[0]
    return {**hf_sizes(arguments), 'seq': arguments.max_length}


@case('trl.yaml', 'trl', 'datasets')
@with_bf16
def trl_yaml(text):
    from trl import SFTConfig, TrlParser
    arguments = TrlParser(SFTConfig).parse_args_and_config(['--config', as_file(text, 'a.yaml')])[0]
    return {**hf_sizes(arguments), 'seq': arguments.max_length}


@case('accelerate.yaml', 'accelerate', 'torch')
def accelerate_yaml(text):
    from accelerate.commands.config.config_args import load_config_from_file
    config = load_config_from_file(as_file(text, 'a.yaml'))
    assert str(config.mixed_precision).endswith('bf16') and str(config.distributed_type).endswith('MULTI_GPU'), config
    return {'dp': config.num_processes}


@case('accelerate.yaml', 'accelerate', 'torch', sharding='fsdp')
def accelerate_fsdp(text):
    from accelerate.commands.config.config_args import load_config_from_file
    config = load_config_from_file(as_file(text, 'a.yaml'))
    assert str(config.distributed_type).endswith('FSDP') and config.fsdp_config['fsdp_version'] == 2, config
    return {'dp': config.num_processes}


@case('accelerate.yaml', 'accelerate', 'torch', sharding='zero2')
def accelerate_zero(text):
    from accelerate.commands.config.config_args import load_config_from_file
    config = load_config_from_file(as_file(text, 'a.yaml'))
    assert str(config.distributed_type).endswith('DEEPSPEED') and config.deepspeed_config['zero_stage'] == 2, config
    return {'dp': config.num_processes, 'accumulation': config.deepspeed_config['gradient_accumulation_steps']}


@case('accelerate.cli', 'accelerate', 'torch', sharding='fsdp')
def accelerate_cli_fsdp(text):
    from accelerate.commands.launch import launch_command_parser
    arguments = launch_command_parser().parse_args(shlex.split(text) + ['train.py'])
    assert arguments.use_fsdp and int(arguments.fsdp_version) == 2, arguments
    return {'dp': int(arguments.num_processes), 'accumulation': int(arguments.gradient_accumulation_steps)}


@case('accelerate.cli', 'accelerate', 'torch', sharding='zero3')
def accelerate_cli_zero(text):
    from accelerate.commands.launch import launch_command_parser
    arguments = launch_command_parser().parse_args(shlex.split(text) + ['train.py'])
    assert arguments.use_deepspeed and int(arguments.zero_stage) == 3, arguments
    return {'dp': int(arguments.num_processes), 'accumulation': int(arguments.gradient_accumulation_steps)}


@case('accelerate.cli', 'accelerate', 'torch')
def accelerate_cli(text):
    from accelerate.commands.launch import launch_command_parser
    arguments = launch_command_parser().parse_args(shlex.split(text) + ['train.py'])
    return {'dp': int(arguments.num_processes), 'accumulation': int(arguments.gradient_accumulation_steps)}


@case('accelerate.python', 'accelerate', 'torch')
def accelerate_python(text):
    values = run_python(text)
    return {'micro': values['batch_size'], 'accumulation': values['accelerator'].gradient_accumulation_steps}


@case('accelerate.env', 'accelerate', 'torch')
def accelerate_env(text):
    program = 'import accelerate; print(accelerate.Accelerator().gradient_accumulation_steps)'
    script = text + f'exec {shlex.quote(sys.executable)} -c {shlex.quote(program)}\n'
    said = subprocess.run(['sh', '-c', script], capture_output=True, text=True, check=True)
    return {'accumulation': int(said.stdout)}


# --- PyTorch, DeepSpeed, Lightning -------------------------------------------------------------------------------------------

@case('torchrun.cli', 'torch')
def torchrun(text):
    from torch.distributed.run import parse_args
    arguments = parse_args(shlex.split(text) + ['train.py'])
    return {'dp': int(arguments.nproc_per_node) * int(arguments.nnodes)}


@case('deepspeed.json', 'deepspeed', 'torch')
def deepspeed_json(text):
    from deepspeed.runtime.config import DeepSpeedConfig

    with mock.patch('deepspeed.comm.get_rank', return_value=0), \
            mock.patch('deepspeed.comm.get_world_size', return_value=RUN['dp']):
        config = DeepSpeedConfig(as_file(text, 'ds.json'))
    return {'micro': config.train_micro_batch_size_per_gpu, 'accumulation': config.gradient_accumulation_steps,
            'global': config.train_batch_size}


def lightning_config(arguments):
    from lightning.pytorch.cli import LightningCLI
    from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel

    class Data(BoringDataModule):
        """A data module with a batch size, as a user's."""
        def __init__(self, batch_size: int = 1):
            super().__init__()
            self.batch_size = batch_size

    cli = LightningCLI(BoringModel, Data, args=arguments + ['--trainer.accelerator=cpu'], run=False)
    assert cli.trainer.precision == 'bf16-mixed', cli.trainer.precision
    return {'micro': cli.datamodule.batch_size, 'accumulation': cli.trainer.accumulate_grad_batches,
            'dp': cli.trainer.num_devices * cli.trainer.num_nodes}


@case('lightning.yaml', 'lightning', 'jsonargparse')
def lightning_yaml(text):
    return lightning_config(['--config', as_file(text, 'a.yaml')])


@case('lightning.cli', 'lightning', 'jsonargparse')
def lightning_cli(text):
    return lightning_config(shlex.split(text))


@case('lightning.python', 'lightning')
def lightning_python(text):
    values = run_python(text.replace('Trainer(\n', 'Trainer(\n    accelerator="cpu",\n'))
    trainer = values['trainer']
    return {'micro': values['batch_size'], 'accumulation': trainer.accumulate_grad_batches,
            'dp': trainer.num_devices * trainer.num_nodes}


# --- trainers of language models ---------------------------------------------------------------------------------------------

@case('torchtitan.toml', 'torchtitan', 'tyro')
def torchtitan_toml(text):
    from torchtitan.config import ConfigManager
    config = ConfigManager().parse_args(['--job.config_file', as_file(text, 'a.toml')])
    return {'micro': config.training.local_batch_size, 'global': config.training.global_batch_size,
            'seq': config.training.seq_len}


@case('torchtune.yaml', 'torchtune', 'omegaconf', 'torchao', 'sentencepiece', 'tiktoken')
def torchtune_yaml(text):
    from torchtune.config._parse import TuneRecipeArgumentParser
    config, rest = TuneRecipeArgumentParser('x').parse_known_args(['--config', as_file(text, 'a.yaml')])
    assert not rest, rest
    return {'micro': config.batch_size, 'accumulation': config.gradient_accumulation_steps,
            'seq': config.tokenizer['max_seq_len']}


@case('torchtune.cli', 'torchtune', 'omegaconf', 'torchao', 'sentencepiece', 'tiktoken')
def torchtune_cli(text):
    from omegaconf import OmegaConf
    from torchtune.config._utils import _merge_yaml_and_cli_args
    from argparse import Namespace
    config = _merge_yaml_and_cli_args(Namespace(batch_size=1, tokenizer={'max_seq_len': 1}), shlex.split(text))
    assert OmegaConf.is_config(config)
    return {'micro': config.batch_size, 'accumulation': config.gradient_accumulation_steps,
            'seq': config.tokenizer.max_seq_len}


@case('axolotl.yaml', 'axolotl')
def axolotl_yaml(text):
    import yaml
    from axolotl.utils.schemas.config import AxolotlInputConfig
    document = {'base_model': 'x', 'datasets': [{'path': 'x', 'type': 'alpaca'}], 'learning_rate': 1e-4, **yaml.safe_load(text)}
    config = AxolotlInputConfig(**document)
    return sizes(config, micro='micro_batch_size', accumulation='gradient_accumulation_steps', seq='sequence_len')


@case('llama-factory.yaml', 'llamafactory', 'transformers', 'datasets')
@with_bf16
def llama_factory_yaml(text):
    import yaml
    return llama_factory(yaml.safe_load(text))


@case('llama-factory.cli', 'llamafactory', 'transformers', 'datasets')
@with_bf16
def llama_factory_cli(text):
    return llama_factory(shlex.split(text))


def llama_factory(arguments):
    from transformers import HfArgumentParser
    from llamafactory.hparams import DataArguments, FinetuningArguments, ModelArguments
    from llamafactory.hparams.training_args import TrainingArguments
    parser = HfArgumentParser([ModelArguments, DataArguments, TrainingArguments, FinetuningArguments])
    if isinstance(arguments, dict):
        parsed = parser.parse_dict({'model_name_or_path': 'x', 'output_dir': 'x', **arguments})
    else:
        parsed = parser.parse_args_into_dataclasses(['--model_name_or_path', 'x', '--output_dir', 'x'] + arguments)
    assert not parsed[0].disable_gradient_checkpointing
    return {**hf_sizes(parsed[2]), 'seq': parsed[1].cutoff_len}


@case('litgpt.yaml', 'litgpt', 'jsonargparse')
def litgpt_yaml(text):
    return litgpt(['--config', as_file(text, 'a.yaml')])


@case('litgpt.cli', 'litgpt', 'jsonargparse')
def litgpt_cli(text):
    return litgpt(shlex.split(text))


def litgpt(arguments):
    from jsonargparse import ArgumentParser
    from litgpt.args import TrainArgs
    parser = ArgumentParser()
    parser.add_argument('--config', action='config')
    parser.add_class_arguments(TrainArgs, 'train')
    parser.add_argument('--precision', type=str)
    parser.add_argument('--devices', type=int)
    parser.add_argument('--num_nodes', type=int)
    config = parser.parse_args(arguments)
    return {'micro': config.train.micro_batch_size, 'global': config.train.global_batch_size,
            'seq': config.train.max_seq_length, 'dp': config.devices * config.num_nodes}


@case('oumi.yaml', 'oumi', 'omegaconf', 'transformers')
@with_bf16
def oumi_yaml(text):
    from oumi.core.configs import TrainingConfig
    config = TrainingConfig.from_yaml(as_file(text.replace('model:\n', 'model:\n  model_name: x\n'), 'a.yaml'))
    return {**hf_sizes(config.training), 'seq': config.model.model_max_length}


@case('megatron-lm.cli', 'megatron.training')
def megatron_lm(text):
    from argparse import ArgumentParser
    from megatron.training.arguments import add_megatron_arguments
    arguments = add_megatron_arguments(ArgumentParser(allow_abbrev=False)).parse_args(shlex.split(text))
    return {'micro': arguments.micro_batch_size, 'global': arguments.global_batch_size, 'seq': arguments.seq_length}


@case('verl.cli', 'verl', 'hydra', 'omegaconf')
def verl_cli(text):
    from hydra import compose, initialize_config_dir
    folder = os.path.join(os.path.dirname(importlib.util.find_spec('verl').origin), 'trainer/config')
    with initialize_config_dir(folder, version_base=None):
        config = compose('ppo_trainer', overrides=shlex.split(text))
    return {'micro': config.actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu,
            'global': config.actor_rollout_ref.actor.ppo_mini_batch_size,
            'dp': config.trainer.n_gpus_per_node * config.trainer.nnodes}


# --- others ------------------------------------------------------------------------------------------------------------------

def ultralytics(arguments):
    from ultralytics.cfg import get_cfg
    config = get_cfg(overrides=arguments)
    return {'global': config.nbs, 'total': config.batch}


@case('ultralytics.yaml', 'ultralytics', 'cv2')
def ultralytics_yaml(text):
    return ultralytics(as_file(text, 'a.yaml'))


@case('ultralytics.python', 'ultralytics', 'cv2')
def ultralytics_python(text):
    return ultralytics(run_python(text)['arguments'])


@case('open-clip.cli', 'open_clip_train')
def open_clip(text):
    from open_clip_train.params import parse_args
    arguments = parse_args(shlex.split(text))
    assert arguments.precision == 'amp_bf16' and arguments.grad_checkpointing
    return sizes(arguments, micro='batch_size', accumulation='accum_freq')


@case('mmengine.python', 'mmengine', 'yapf')
def mmengine_python(text):
    from mmengine.config import Config
    config = Config.fromfile(as_file(text, 'a.py'))
    return {'micro': config.train_dataloader.batch_size, 'accumulation': config.optim_wrapper.accumulative_counts}


@case('mmengine.cli', 'mmengine', 'yapf')
def mmengine_cli(text):
    from argparse import ArgumentParser
    from mmengine.config import Config, DictAction
    parser = ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    config = Config({'train_dataloader': {'batch_size': 1}, 'optim_wrapper': {'type': 'OptimWrapper'}})
    config.merge_from_dict(parser.parse_args(shlex.split(text)).cfg_options)
    return {'micro': config.train_dataloader.batch_size, 'accumulation': config.optim_wrapper.accumulative_counts}


@case('speechbrain.yaml', 'hyperpyyaml')
def speechbrain_yaml(text):
    from hyperpyyaml import load_hyperpyyaml
    values = load_hyperpyyaml(text)
    return {'micro': values['batch_size'], 'accumulation': values['grad_accumulation_factor']}


@case('opennmt.yaml', 'onmt', 'configargparse', 'pyonmttok', 'spacy')
def opennmt_yaml(text):
    return opennmt(['-config', as_file(text, 'a.yaml')])


@case('opennmt.cli', 'onmt', 'configargparse', 'pyonmttok', 'spacy')
def opennmt_cli(text):
    return opennmt(shlex.split(text))


def opennmt(arguments):
    from onmt.opts import train_opts
    from onmt.utils.parse import ArgumentParser
    parser = ArgumentParser()
    train_opts(parser)
    options = parser.parse_args(['-data', '{}', '-src_vocab', 'x'] + arguments)
    assert options.batch_type == 'sents'
    return {'micro': options.batch_size, 'accumulation': options.accum_count[0]}


# --- the run -----------------------------------------------------------------------------------------------------------------

def has_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def emitted(program, form, sharding):
    with open(RESULT, encoding='utf-8') as file:
        text = file.read().replace('"sharding": "ddp"', f'"sharding": "{sharding}"')
    result = as_file(text, 'result.json')
    said = subprocess.run([program, 'emit', '--quiet', result, form], capture_output=True, text=True, check=False)
    if said.returncode:
        raise AssertionError(said.stderr)
    return said.stdout


def judge(read):
    """None, or in what the sizes that were read are other ones."""
    expected = {**RUN, 'total': RUN['micro'] * RUN['dp']}
    wrong = {role: value for role, value in read.items() if value != expected[role]}
    return f'read back {wrong}, expected {expected}' if wrong or not read else None


def try_case(program, form, function, sharding):
    noise = io.StringIO()
    arguments, sys.argv = sys.argv, ['train.py']
    try:
        with contextlib.redirect_stdout(noise):
            return judge(function(emitted(program, form, sharding)))
    except (Exception, SystemExit) as problem:  # pylint: disable=broad-except
        return f'{type(problem).__name__}: {str(problem)[-400:]}'
    finally:
        sys.argv = arguments


def main(arguments):
    program, names = os.path.abspath(arguments[0]), arguments[1:]
    failed, read, skipped = 0, 0, []
    os.environ.update(CUDA_VISIBLE_DEVICES='', DISABLE_VERSION_CHECK='1', HF_HUB_OFFLINE='1', WANDB_MODE='disabled')
    for form, packages, function, sharding in CASES:
        if names and not any(name in form for name in names):
            continue
        missing = [name for name in packages if not has_module(name)]
        if missing:
            skipped.append(f'{form} ({missing[0]})')
            continue
        problem = try_case(program, form, function, sharding)
        read += not problem
        failed += bool(problem)
        print(f'{form} with {sharding}: {problem or "ok"}', flush=True)
    if skipped:
        print('SKIPPED, not installed: ' + ', '.join(skipped))
    print(f'{read} of {read + failed} read back, {len(skipped)} skipped')
    sys.exit(1 if failed else 0 if read else 77)


if __name__ == '__main__':
    main(sys.argv[1:])
