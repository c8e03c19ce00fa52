"""What -Dgpu_archs stands for, with stand-ins for nvcc and nvidia-smi: test_gpu_archs.py SCRIPT"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
NVCC = '#!/bin/sh\nfor n in 75 80 86 90 100; do echo sm_$n; done\n'


class GpuArchs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program('nvcc', NVCC)

    def program(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w', encoding='ascii') as file:
            file.write(text)
        os.chmod(path, 0o755)

    def gpus(self, *told, exit_code=0):
        self.program('nvidia-smi', '#!/bin/sh\n' + ''.join(f'echo "{line}"\n' for line in told)
                     + f'exit {exit_code}\n')

    def run_script(self, archs):
        nvcc = os.path.join(self.folder.name, 'nvcc')
        return subprocess.run([sys.executable, SCRIPT, nvcc, archs],
                              env={'PATH': self.folder.name}, capture_output=True, text=True)

    def expect(self, archs, answer):
        result = self.run_script(archs)
        self.assertEqual((result.returncode, result.stdout), (0, answer + '\n'), result.stderr)

    def test_all_are_those_that_nvcc_knows(self):
        self.expect('all', '75 80 86 90 100')

    def test_a_list_is_sorted_by_number(self):
        self.expect('100,80,80', '80 100')

    def test_a_list_with_an_unknown_one_is_refused(self):
        result = self.run_script('80,8.6')
        self.assertEqual(result.returncode, 1)
        self.assertIn("'8.6' is none that nvcc knows, expected all, native or some of 75,80",
                      result.stderr)

    def test_native_without_a_driver_is_none(self):
        self.expect('native', '')

    def test_native_with_a_driver_that_fails_is_none(self):
        self.gpus('8.0', exit_code=9)
        self.expect('native', '')

    def test_native_is_each_kind_of_gpu_once(self):
        self.gpus('9.0', '7.5', '9.0')
        self.expect('native', '75 90')

    def test_native_passes_over_what_is_no_number(self):
        self.gpus('[N/A]', '8.6')
        self.expect('native', '86')

    def test_native_takes_the_next_older_for_one_that_nvcc_does_not_know(self):
        self.gpus('12.1', '8.9', '7.0')
        self.expect('native', '86 100')


unittest.main()
