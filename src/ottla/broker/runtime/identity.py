"""Who this broker is in the cluster, and in which term of whose controller it acts."""

from ottla.model.ids import BrokerId


class Identity:
    """This broker's id, its cluster, and the epochs by which others know it."""

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.cluster_id = ""
        self.broker_epoch = -1
        """The epoch of the present registration (the zxid of ``/brokers/ids/<id>``)."""
        self.controller_epoch = 0
        """The highest seen in a controller's request; requests with a lower one are refused."""
        self.assigned_as = -1
        """As which registration (by its epoch) this broker was last told what to lead."""

    @property
    def is_registered(self) -> bool:
        """This broker has been a member of the cluster since it started."""
        return self.broker_epoch >= 0

    @property
    def is_untold(self) -> bool:
        """The session ended, and no controller has said since what this broker leads."""
        return self.assigned_as < self.broker_epoch
