"""
A UDF for NumPy and CuPy
========================

A UDF that uses ``self.xp`` runs on a CPU with NumPy and on a GPU with CuPy. This one computes the
mean cepstrum, whose spots are the distances between atoms. It runs on a GPU if there is one, and
otherwise on the CPU; the title of the picture says where it ran.

See also: :doc:`CUDA devices </user-guide/operations/gpu>`, :class:`~udfdask.UDF`.
"""

from importlib.util import find_spec

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.plotting import Panel, draw
from udfdask.udfs import SumUDF


class CepstrumUDF(ud.UDF):
    """Add up the Fourier transforms of the logarithm of all frames."""

    def get_backends(self):
        return (self.BACKEND_NUMPY, self.BACKEND_CUPY)

    def get_result_buffers(self):
        # where="device": the sum stays on the GPU until a chunk is done.
        return {"cepstrum": self.buffer(kind="sig", dtype="float32", where="device")}

    def process_partition(self, frames):
        spectrum = self.xp.fft.fft2(self.xp.log1p(frames))
        self.results.cepstrum[:] += self.xp.abs(spectrum).sum(axis=0)

    def merge(self, dest, src):
        dest.cepstrum[:] += src.cepstrum

    def get_results(self):
        return {"cepstrum": self.xp.fft.fftshift(self.xp.asarray(self.results.cepstrum))}


scan = make_recording(nav_shape=(24, 32), sig_shape=(96, 96))
backend = "cupy" if find_spec("cupy") else "numpy"
cepstrum, total = ud.compute(*ud.run_udf(scan, [CepstrumUDF(), SumUDF()], backends=backend))

# The cepstrum has the unit of a length: its pixels are 1 / (96 pixels of 0.25 1/nm). Spots far
# from the middle are weak, so only the middle is drawn.
middle = cepstrum["cepstrum"][20:77, 20:77]
nm = tuple(ud.Axis(name=n, unit="nm", scale=1 / 24, offset=-28 / 24) for n in "yx")
per_nm = tuple(ud.Axis(name=n, unit="1/nm", scale=0.25, offset=-12) for n in ("ky", "kx"))
where = "on the GPU" if backend == "cupy" else "on the CPU"
look = {"style": "pattern", "log": True}
panels = [
    Panel(title=f"Mean cepstrum, {where}", values=middle, axes=nm, **look),
    Panel(title="Sum of 768 frames", values=total["intensity"], axes=per_nm, **look),
]
figure = draw(panels)
