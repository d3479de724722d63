// What launches and workers tell the flight record.
#pragma once

#include "harness/host/launch_plan.h"

namespace attn_diag::host {

class BlockRunner;

// Names the plan's kernel, if that is wanted.
void note_launch(LaunchPlan& plan);

// What a launch failed of.
void note_failure(const LaunchFinding& finding);

// A worker's runner comes into being, and goes.
void enter_flight(const BlockRunner& runner) noexcept;
void leave_flight(const BlockRunner& runner) noexcept;

}  // namespace attn_diag::host
