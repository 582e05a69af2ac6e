from conftest import *
def test_hold(stacked):
    edit(stacked.root/"series.yaml", "  - name: tests-add-a-case\n", "  - name: tests-add-a-case\n    state: hold\n")
    stacked.ok("apply")
    w=stacked.world()
    r=stacked.ok("rebase","--onto","v1"); print(r)
    assert stacked.world()==w
    r=stacked.ok("rebase","--onto","v2"); print(r)
    assert "state: hold" in (stacked.root/"series.yaml").read_text()
