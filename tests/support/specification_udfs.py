"""The UDFs of the specification's examples, written anew: same names, same features.

Two of the originals lean on how LiberTEM divides its data; a comment says what is done instead.
"""

import numpy as np

from udfdask import UDF
from udfdask.libertem import count_nonzero


class MySumUDF(UDF):
    def get_result_buffers(self):
        return {"intensity": self.buffer("sig", dtype=self.meta.input_dtype)}

    def process_tile(self, tile):
        self.results.intensity += tile.sum(axis=0)

    def merge(self, dest, src):
        dest.intensity += src.intensity


class MySumMergeUDF(MySumUDF):
    def merge_all(self, ordered_results):
        parts = np.stack([part.intensity for part in ordered_results.values()])
        return {"intensity": np.sum(parts, axis=0)}


class OnlyMergeAllUDF(UDF):
    """With a merge_all alone, which takes its partials by item."""

    get_result_buffers = MySumUDF.get_result_buffers
    process_tile = MySumUDF.process_tile

    def merge_all(self, ordered_results):
        return {name: sum(p[name] for p in ordered_results.values()) for name in ("intensity",)}


class AverageUDF(UDF):
    def get_result_buffers(self):
        def whole_frame(use=None):
            return self.buffer("sig", dtype="float32", use=use)

        return {
            "sum": whole_frame(),
            "num_frames": self.buffer("single", dtype="uint64"),
            "average": whole_frame(use="result_only"),
        }

    def process_frame(self, frame):
        self.results.num_frames += 1
        self.results.sum += frame

    def merge(self, dest, src):
        for name in ("sum", "num_frames"):
            getattr(dest, name)[...] += getattr(src, name)

    def get_results(self):
        # a float32 array by a uint64 one: float64, which is cast; sum and num_frames pass
        return {"average": self.results.sum / self.results.num_frames}


class CustomValidMask(UDF):
    """A result of kind single in the shape of the scan or of the ROI, masked like a nav one."""

    def get_result_buffers(self):
        roi = self.meta.roi
        shape = self.meta.dataset_shape.nav if roi is None else (count_nonzero(roi),)
        return {"custom_2d": self.buffer("single", extra_shape=shape, dtype="float32")}

    def process_frame(self, frame):
        # The original indexes with meta.coordinates itself, which is an array of one row: with
        # two navigation axes that assigns two whole lines of the scan. And with a ROI the buffer
        # is flat, where the slice is what counts.
        if self.meta.roi is None:
            place = tuple(self.meta.coordinates.T)
        else:
            place = self.meta.slice.get(nav_only=True)
        self.results.custom_2d[place] = frame.sum()

    def merge(self, dest, src):
        dest.custom_2d += src.custom_2d

    def get_results(self):
        image = self.results.custom_2d
        valid = self.meta.get_valid_nav_mask()
        return {"custom_2d": self.with_mask(image, mask=valid.reshape(image.shape))}


class PixelsumUDF(UDF):
    """Rows put into a buffer of kind single by the slice: flat navigation, ROI applied."""

    def get_result_buffers(self):
        nav, roi = self.meta.dataset_shape.nav, self.meta.roi
        rows = nav.size if roi is None else np.count_nonzero(roi)
        dtype = self.meta.dataset_dtype
        return {"pixelsum_nav_raw": self.buffer("single", extra_shape=(rows,), dtype=dtype)}

    def process_frame(self, frame):
        self.results.pixelsum_nav_raw[self.meta.slice.get(nav_only=True)] = frame.sum()

    def merge(self, dest, src):
        dest.pixelsum_nav_raw += src.pixelsum_nav_raw


class CoordUDF(UDF):
    def get_result_buffers(self):
        axes = len(self.meta.dataset_shape.nav)
        return {"coords": self.buffer("nav", extra_shape=(axes,), dtype=int)}

    def process_tile(self, tile):
        self.results.coords = self.meta.coordinates


class SumSigUDF(UDF):
    """Offers every backend there is, keeps its buffer on the device, and converts with forbuf."""

    def get_backends(self):
        return self.BACKEND_ALL

    def get_result_buffers(self):
        dtype = np.result_type(np.float32, self.meta.input_dtype)
        return {"intensity": self.buffer("nav", dtype=dtype, where="device")}

    def process_tile(self, tile):
        assert self.meta.array_backend == "numpy"
        flat = tile.reshape((len(tile), -1))
        self.results.intensity += self.forbuf(flat.sum(axis=1), self.results.intensity)


class CorrelationUDF(UDF):
    """Correlates log-scaled frames with a template around expected peaks, and finds the maxima.

    In the shape of the blob finder of the text: masks as task data, cut by the slice of the tile; a
    product that is added up over tiles; maps evaluated in postprocess.
    """

    # The original takes the minimum of each tile: what it finds hangs on the tile's size. Whole
    # frames, and the minimum of each, make it a matter of the frame.
    whole_frames = True

    def __init__(self, peaks, steps, template):
        super().__init__(peaks=peaks, steps=steps, template=template)

    def shifts(self):
        side = 2 * self.params.steps + 1
        return np.indices((side, side)).reshape(2, -1).T - self.params.steps

    def get_task_data(self):
        template = self.params.template
        shifts = self.shifts()
        corners = self.params.peaks[:, np.newaxis] + shifts - len(template) // 2
        masks = np.zeros((corners[..., 0].size, *self.meta.dataset_shape.sig), dtype="float32")
        for mask, (y, x) in zip(masks, corners.reshape(-1, 2), strict=True):
            mask[y : y + template.shape[0], x : x + template.shape[1]] = template
        return {"masks": masks}

    def get_result_buffers(self):
        n = len(self.params.peaks)
        shifts = self.shifts()
        return {
            "maps": self.buffer("nav", extra_shape=(n * len(shifts),), use="private"),
            "centers": self.buffer("nav", extra_shape=(n, 2), dtype="int32"),
            "heights": self.buffer("nav", extra_shape=(n,)),
        }

    def process_tile(self, tile):
        flat = tile.reshape((len(tile), -1))
        scaled = np.log(flat - flat.min(axis=1, keepdims=True) + 1)
        masks = self.task_data.masks[(..., *self.meta.slice.get(sig_only=True))]
        self.results.maps += scaled @ masks.reshape((len(masks), -1)).T

    def postprocess(self):
        shifts = self.shifts()
        maps = self.results.maps.reshape((-1, len(self.params.peaks), len(shifts)))
        assert len(maps) == self.meta.partition_shape.nav[0]
        best = maps.argmax(axis=2)
        self.results.centers = self.params.peaks + shifts[best]
        self.results.heights = maps.max(axis=2)
