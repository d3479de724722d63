def judge(made):
    return {"verdict": made["trace"]["answer"]}


def write(folder):
    pass
