// Not there on the host executor.
#pragma once

#error \
    "cuBLAS is not there on the host executor: write the product as a kernel, or build for --backend cuda"
