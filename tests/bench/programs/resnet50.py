"""ResNet-50 v1.5 (the stride in the 3 x 3 convolution) on images of 224.

    python resnet50.py --batch 64 [--precision fp16-mixed] [--layout nhwc]
"""
import torch
from torch import nn

import training


class Bottleneck(nn.Module):
    def __init__(self, width_in, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu, self.down = nn.ReLU(inplace=True), None
        if stride != 1 or width_in != 4 * width:
            self.down = nn.Sequential(nn.Conv2d(width_in, 4 * width, 1, stride, bias=False),
                                      nn.BatchNorm2d(4 * width))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += self.down(x) if self.down else x
        return self.relu(out)


def resnet50():
    layers, width_in = [], 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(depth):
            layers.append(Bottleneck(width_in, width, 2 if stage and not block else 1))
            width_in = 4 * width
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64),
                         nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1), *layers,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def main():
    parser = training.parser(__doc__)
    parser.add_argument('--layout', choices=training.LAYOUTS, default='nchw')
    parser.add_argument('--smoothing', type=float, default=0.0)
    parser.add_argument('--mixup', action='store_true')
    parser.add_argument('--load', action='store_true', help='copy each batch from the host')
    options = parser.parse_args()
    training.allow_tf32(options)

    layout = training.LAYOUTS[options.layout]
    dtype = torch.float16 if options.precision == 'fp16' else torch.float32
    model = resnet50().to('cuda', dtype, memory_format=layout)
    images = torch.randn(options.batch, 3, 224, 224, dtype=dtype).to(memory_format=layout)
    if not options.load:
        images = images.cuda()
    labels = torch.randint(1000, (options.batch,)).cuda()
    loss = nn.CrossEntropyLoss(label_smoothing=options.smoothing)

    def loss_of():
        batch = images.cuda()
        if options.mixup:
            batch = 0.7 * batch + 0.3 * batch.flip(0)
        return loss(model(batch), labels)

    training.train(options, model, loss_of)


main()
