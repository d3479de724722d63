// Not there on the host executor.
#pragma once

#error "cuDNN is not there on the host executor: build for --backend cuda"
