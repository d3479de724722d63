// Stand-in for PyTorch's header of this name.
#pragma once

#include "attn_diag_torch/torch.h"
