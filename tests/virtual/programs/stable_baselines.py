"""PPO of stable-baselines3 on the GPU, two rollouts of 128 steps."""
from stable_baselines3 import PPO

import peaks

PPO('MlpPolicy', 'CartPole-v1', device='cuda', n_steps=128, batch_size=64, n_epochs=2).learn(256)
peaks.report()
