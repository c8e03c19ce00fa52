"""Training of ultralytics' smallest YOLO for an epoch, on pictures that are made here, with its validation."""
import os
import tempfile

import numpy as np
import torch

DATA = 'path: {0}\ntrain: train/images\nval: val/images\nnames:\n  0: a\n  1: b\n'


def make_pictures(folder, count):
    from PIL import Image
    random = np.random.default_rng(0)
    for kind in ('images', 'labels'):
        os.makedirs(os.path.join(folder, kind))
    for i in range(count):
        Image.fromarray(random.integers(0, 255, (96, 96, 3), np.uint8)).save(f'{folder}/images/{i}.png')
        with open(f'{folder}/labels/{i}.txt', 'w') as file:
            file.writelines(f'{k % 2} {0.3 + 0.1 * k} 0.4 0.2 0.3\n' for k in range(3))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ['YOLO_CONFIG_DIR'] = folder  # before the import
        from ultralytics import YOLO

        import peaks
        for part, count in (('train', 8), ('val', 4)):
            make_pictures(os.path.join(folder, part), count)
        with open(os.path.join(folder, 'data.yaml'), 'w') as file:
            file.write(DATA.format(folder))
        YOLO('yolo11n.yaml').train(data=os.path.join(folder, 'data.yaml'), epochs=1, imgsz=96, batch=4, device=0,
                                   workers=0, plots=False, pretrained=False, amp=False, project=folder)
        torch.cuda.synchronize()
        peaks.report()


main()
