"""Template matching by the book: loops over frames, peaks, shifts and pixels, in float64."""

import numpy as np


def log_scaled(frame):
    return np.log(frame - frame.min() + 1)


def correlation_map(frame, template, y, x, steps):
    cy, cx = template.shape[0] // 2, template.shape[1] // 2
    found = np.zeros((2 * steps + 1, 2 * steps + 1))
    for dy in range(-steps, steps + 1):
        for dx in range(-steps, steps + 1):
            for i in range(template.shape[0]):
                for j in range(template.shape[1]):
                    row, column = y + dy + i - cy, x + dx + j - cx
                    if 0 <= row < frame.shape[0] and 0 <= column < frame.shape[1]:
                        found[dy + steps, dx + steps] += frame[row, column] * template[i, j]
    return found


def maximum(one):
    """Place, refined place, height and elevation of the maximum of a map."""
    y, x = np.unravel_index(one.argmax(), one.shape)
    height = one[y, x]
    r = min(2, y, x, one.shape[0] - 1 - y, one.shape[1] - 1 - x)
    weight = one[y - r : y + r + 1, x - r : x + r + 1]
    weight = weight - weight.min()
    i, j = np.mgrid[y - r : y + r + 1, x - r : x + r + 1]
    total = weight.sum()
    fine = ((weight * i).sum() / total, (weight * j).sum() / total) if total > 0 else (y, x)
    rows, columns = np.indices(one.shape)
    distance = np.hypot(rows - fine[0], columns - fine[1])
    far = distance >= 1.5
    slope = ((height - one)[far] / distance[far]).min()
    return (y, x), fine, height, max(0.0, slope)


def correlate(frames, peaks, template, steps, shifts=None, log_scale=True):
    """All results, by name, for frames of shape (n, height, width)."""
    peaks = np.rint(peaks).astype(int)
    n, k = len(frames), len(peaks)
    shifts = np.zeros((n, 2)) if shifts is None else np.broadcast_to(shifts, (n, 2))
    found = {
        "centers": np.zeros((n, k, 2), dtype="int32"),
        "refineds": np.zeros((n, k, 2)),
        "peak_values": np.zeros((n, k)),
        "peak_elevations": np.zeros((n, k)),
    }
    for f, frame in enumerate(np.asarray(frames, dtype="float64")):
        data = log_scaled(frame) if log_scale else frame
        for p, (y, x) in enumerate(peaks + np.rint(shifts[f]).astype(int)):
            place, fine, height, elevation = maximum(correlation_map(data, template, y, x, steps))
            corner = np.array([y, x]) - steps
            found["centers"][f, p] = corner + place
            found["refineds"][f, p] = corner + fine
            found["peak_values"][f, p] = height
            found["peak_elevations"][f, p] = elevation
    return found
