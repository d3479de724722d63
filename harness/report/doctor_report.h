// What can run on this machine, as text and as JSON.
#pragma once

#include <string>

#include "harness/doctor/doctor.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

std::string doctor_text(const Health& health, const std::string& version, const Style& style);
Json doctor_json(const Health& health, const std::string& version);

}  // namespace attn_diag::report
